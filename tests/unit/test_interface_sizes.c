/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Results for programs that were compiled with other headers. An older struct ends earlier, a newer one later: the
 * fields of both are the same as with the headers of today, the bytes that this library does not know are zero, and no
 * byte behind the caller's struct or array is written. test_other_headers.py does the same with receivers, which need a
 * device.
 */
#include "cm.h"
#include "fake_engine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define CANARY 0xa5
#define MOST 3       /* elements of an array */
#define ROOM 4096    /* bytes of the caller's memory */
#define EXTENT(type, field) (offsetof(struct type, field) + sizeof ((struct type *)0)->field)

/* One function that fills a struct, or MOST of them. */
struct filler {
	const char *name;
	size_t known;  /* the size of the struct here */
	size_t stable; /* its first bytes, which are the same in each call; the rest are times or padding */
	int count;     /* elements that it fills: 1, or more for an array */
	int (*fill)(void *to, size_t size); /* the same state each time; 0 when it has filled */
	bool rtnetlink; /* qemu-user translates only a part of rtnetlink between the orders of bytes */
};

static int fill_clock_pair(void *to, size_t size)
{
	ktrxer_clock_pair_read_sized(to, size);
	return 0;
}

static int fill_device(void *to, size_t size)
{
	return ktrxer_device_get_sized(to, size, "lo", NULL);
}

static int fill_devices(void *to, size_t size)
{
	return ktrxer_device_list_sized(to, size, 1, NULL) < 1;
}

static int fill_qdiscs(void *to, size_t size)
{
	return ktrxer_device_qdiscs_sized(to, size, 1);
}

static int fill_path(void *to, size_t size)
{
	struct ktrxer_path_options options = KTRXER_PATH_OPTIONS_INIT;

	options.to = (struct ktrxer_addr){ .family = AF_INET, .bytes = { 127, 0, 0, 1 } };
	return ktrxer_path_resolve_sized(to, size, &options, NULL);
}

/* An older struct of the path is refused: its frame could have no address. */
static int frame_built(uint8_t frame[64], size_t path_size)
{
	const struct ktrxer_path path = { .device.link = KTRXER_LINK_ETHERNET,
					  .source = { AF_INET, { 192, 0, 2, 1 }, 0 },
					  .to = { AF_INET, { 192, 0, 2, 2 }, 0 } };
	struct ktrxer_frame_spec spec = KTRXER_FRAME_SPEC_INIT;

	assert_int_equal(spec.path_size, sizeof path);
	spec.path = &path;
	spec.path_size = path_size;
	spec.proto = KTRXER_UDP;
	spec.from_port = 7;
	spec.to_port = 9;
	return ktrxer_frame_build(frame, 64, &spec);
}

static int fill_view(void *to, size_t size)
{
	uint8_t frame[64];
	int length = frame_built(frame, sizeof(struct ktrxer_path));

	return ktrxer_frame_read_sized(to, size, frame, (uint32_t)length, KTRXER_LINK_ETHERNET);
}

static int fill_deadline(void *to, size_t size)
{
	struct ktrxer_schedule_options options = KTRXER_SCHEDULE_OPTIONS_INIT;
	struct ktrxer_schedule *schedule;
	int rc;

	options.kind = KTRXER_SCHEDULE_PERIODIC;
	options.start_ns = 77;
	options.gap_num = 5;
	options.train = 2;
	assert_int_equal(ktrxer_schedule_new(&schedule, &options, NULL), 0);
	rc = ktrxer_schedule_next_sized(schedule, to, size);
	ktrxer_schedule_free(schedule);
	return rc;
}

static int fill_rule(void *to, size_t size)
{
	return krx_rule_parse_sized(to, size, "drop udp from 192.0.2.0/24 to any:53 prio 7", NULL);
}

/* A transmitter that has sent MOST probes. */
static struct ktx *sent(void)
{
	struct ktx *tx = fake_open_with(
		(struct ktx_options){ .size = sizeof(struct ktx_options), .flags = KTX_CALLER_PUMPS, .cpu = -1 });
	uint64_t next;

	for (uint64_t id = 100; id < 100 + MOST; id++)
		assert_int_equal(fake_commit(tx, id, id, 0), 0);
	assert_int_equal(ktx_pump(tx, &next), 0);
	(void)fake_drain(tx);
	return tx;
}

static int fill_info(void *to, size_t size)
{
	struct ktx *tx = sent();

	ktx_info_sized(tx, to, size);
	ktx_close(tx);
	return 0;
}

static int fill_accounts(void *to, size_t size)
{
	struct ktx *tx = sent();

	ktx_accounts_sized(tx, to, size);
	ktx_close(tx);
	return 0;
}

static int fill_reports(void *to, size_t size)
{
	struct ktx *tx = sent();
	int n = ktx_reports_sized(tx, to, size, MOST);

	ktx_close(tx);
	return n != MOST;
}

static int fill_errors(void *to, size_t size)
{
	struct ktx *tx = sent();
	int n;

	for (uint8_t i = 0; i < MOST; i++)
		tx->shared.errors[i] =
			(struct ktx_network_error){ .when_ns = i, .error = ECONNREFUSED, .origin = 2, .quoted = { i } };
	atomic_store(&tx->shared.errors_in, MOST);
	n = ktx_network_errors_sized(tx, to, size, MOST);
	ktx_close(tx);
	return n != MOST;
}

static int fill_slot(void *to, size_t size)
{
	struct ktx *tx = sent();
	int rc = ktx_reserve_sized(tx, to, size);

	ktx_close(tx);
	return rc;
}

static int fill_engines(void *to, size_t size)
{
	return fake_engines_sized(to, size, MOST) < MOST;
}

/* clang-format off */
static const struct filler fillers[] = {
	{ "ktrxer_clock_pair_read", sizeof(struct ktrxer_clock_pair), 0, 1, fill_clock_pair, false },
	{ "ktrxer_device_get", sizeof(struct ktrxer_device), sizeof(struct ktrxer_device), 1, fill_device, true },
	{ "ktrxer_device_list", sizeof(struct ktrxer_device), sizeof(struct ktrxer_device), 1, fill_devices, true },
	{ "ktrxer_device_qdiscs", sizeof(struct ktrxer_qdiscs), sizeof(struct ktrxer_qdiscs), 1, fill_qdiscs, true },
	{ "ktrxer_path_resolve", sizeof(struct ktrxer_path), EXTENT(ktrxer_path, next_hop_mac), 1, fill_path, true },
	{ "ktrxer_frame_read", sizeof(struct ktrxer_frame_view), EXTENT(ktrxer_frame_view, malformed), 1, fill_view,
	  false },
	{ "ktrxer_schedule_next", sizeof(struct ktrxer_deadline), EXTENT(ktrxer_deadline, train_goes_on), 1,
	  fill_deadline, false },
	{ "krx_rule_parse", sizeof(struct krx_rule), EXTENT(krx_rule, to_port), 1, fill_rule, false },
	{ "ktx_info", sizeof(struct ktx_info), 0, 1, fill_info, false },
	{ "ktx_accounts", sizeof(struct ktx_accounts), EXTENT(ktx_accounts, queued), 1, fill_accounts, false },
	{ "ktx_reports", sizeof(struct ktx_report), EXTENT(ktx_report, at_ns), MOST, fill_reports, false },
	{ "ktx_network_errors", sizeof(struct ktx_network_error), EXTENT(ktx_network_error, quoted), MOST, fill_errors,
	  false },
	{ "ktx_reserve", sizeof(struct ktx_slot), 0, 1, fill_slot, false },
	{ "ktx_engines", sizeof(struct ktx_engine_info), sizeof(struct ktx_engine_info), MOST, fill_engines, false },
};
/* clang-format on */

static bool emulated(const struct filler *f)
{
	return f->rtnetlink && getenv("KTRXER_EMULATED");
}

static void filled(const struct filler *f, size_t size, const uint8_t *today)
{
	static uint8_t room[ROOM];
	const size_t end = size * (size_t)f->count, same = size < f->stable ? size : f->stable;

	assert_true(end + 64 <= sizeof room);
	memset(room, CANARY, sizeof room);
	if (f->fill(room, size))
		fail_msg("%s with a struct of %zu bytes", f->name, size);
	for (int i = 0; i < f->count; i++) {
		assert_memory_equal(room + size * (size_t)i, today + f->known * (size_t)i, same);
		for (size_t at = f->known; at < size; at++)
			assert_int_equal(room[size * (size_t)i + at], 0);
	}
	for (size_t at = end; at < sizeof room; at++)
		if (room[at] != CANARY)
			fail_msg("%s with a struct of %zu bytes wrote byte %zu", f->name, size, at);
}

TEST(older_and_newer_structs)
{
	for (size_t i = 0; i < sizeof fillers / sizeof *fillers; i++) {
		const struct filler *f = &fillers[i];
		const size_t sizes[] = { 1, 8, f->known / 2, f->known - 1, f->known, f->known + 1, f->known + 40 };
		uint8_t today[ROOM] = { 0 };

		if (emulated(f))
			continue;
		assert_int_equal(f->fill(today, f->known), 0);
		for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
			filled(f, sizes[s], today);
	}
}

/* The inline functions pass the size of the struct, and the values are in the fields. */
TEST(inline_functions)
{
	struct {
		struct ktx_report reports[MOST];
		uint8_t canary[64];
	} got;
	struct ktx *tx = sent();
	struct ktx_accounts accounts;
	struct ktx_info info;

	memset(&got, CANARY, sizeof got);
	assert_int_equal(ktx_reports(tx, got.reports, MOST), MOST);
	for (uint64_t i = 0; i < MOST; i++) {
		assert_int_equal(got.reports[i].id, 100 + i);
		assert_int_equal(got.reports[i].status, KTX_SENT);
		assert_int_equal(got.reports[i].tries, 1);
	}
	for (size_t i = 0; i < sizeof got.canary; i++)
		assert_int_equal(got.canary[i], CANARY);
	ktx_accounts(tx, &accounts);
	assert_int_equal(accounts.sent, MOST);
	ktx_info(tx, &info);
	assert_string_equal(info.engine, "fake");
	assert_int_equal(info.slots, 1024);
	ktx_close(tx);
}

/* A size of 0: -EINVAL, or no effect where no errno can be returned. Nothing is written. */
TEST(a_size_of_zero_is_refused)
{
	for (size_t i = 0; i < sizeof fillers / sizeof *fillers; i++) {
		const struct filler *f = &fillers[i];
		uint8_t room[64];
		int rc;

		if (emulated(f))
			continue;
		memset(room, CANARY, sizeof room);
		rc = f->fill(room, 0);
		if (!rc && f->fill != fill_info && f->fill != fill_accounts && f->fill != fill_clock_pair)
			fail_msg("%s: a size of 0 is accepted", f->name);
		for (size_t at = 0; at < sizeof room; at++)
			assert_int_equal(room[at], CANARY);
	}
}

/* Input: the elements of krx_open() and its sessions, and the path of a frame. */
TEST(structs_that_the_library_reads)
{
	struct {
		struct krx_rule rule;
		uint8_t newer[16];
	} rules[2] = { 0 };
	struct krx_options options = KRX_OPTIONS_INIT;
	struct ktrxer_error err = { 0 };
	char text[KRX_RULE_TEXT];
	uint8_t frame[64];
	struct krx *rx;

	assert_int_equal(options.rule_size, sizeof(struct krx_rule));
	assert_int_equal(options.session_size, sizeof(struct krx_session));
	for (int i = 0; i < 2; i++)
		assert_int_equal(krx_rule_parse(&rules[i].rule, "capture udp from any to any:9", NULL), 0);
	options.backend = "no such back end"; /* the rules are read before it is looked up */
	options.rule_size = sizeof rules[0];
	rules[1].newer[3] = 1;
	assert_int_equal(krx_open(&rx, &options, &rules[0].rule, 2, &err), -E2BIG);
	assert_non_null(strstr(err.text, "rule 2 of 2"));
	rules[1].newer[3] = 0;
	rules[1].rule.op = 99;
	assert_int_equal(krx_open(&rx, &options, &rules[0].rule, 2, &err), -EINVAL);
	assert_non_null(strstr(err.text, "rule 2 of 2: rule: operation number 99"));
	options.rule_size = 8;
	assert_int_equal(krx_open(&rx, &options, &rules[0].rule, 1, &err), -EINVAL);
	assert_non_null(strstr(err.text, "`size` is 8"));
	options.rule_size = 0;
	assert_int_equal(krx_open(&rx, &options, &rules[0].rule, 1, &err), -EINVAL);
	options.rule_size = sizeof(struct krx_rule);
	options.sessions = (const struct krx_session *)frame;
	options.session_count = 1;
	options.session_size = 3;
	assert_int_equal(krx_open(&rx, &options, &rules[0].rule, 1, &err), -EINVAL);
	assert_non_null(strstr(err.text, "krx_session"));

	assert_string_equal(krx_rule_format_sized(&rules[0].rule, sizeof rules[0], text),
			    "capture udp from any to any:9");
	assert_string_equal(krx_rule_format_sized(&rules[0].rule, 8, text), "");
	rules[0].newer[0] = 1;
	assert_string_equal(krx_rule_format_sized(&rules[0].rule, sizeof rules[0], text), "");

	assert_int_equal(frame_built(frame, sizeof(struct ktrxer_path)), 42);
	assert_int_equal(frame_built(frame, sizeof(struct ktrxer_path) + 100), 42);
	assert_int_equal(frame_built(frame, sizeof(struct ktrxer_path) - 1), -EINVAL);
	assert_int_equal(frame_built(frame, 0), -EINVAL);
}
