/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The public interface against callers that are wrong, or of another version: NULL, a `size` that is too small, smaller
 * or larger than this library's, values and flags that this version does not know. Each is refused with a negative
 * errno and a message; nothing crashes, and an output pointer is NULL after a failure.
 */
#include "cm.h"

#include <ktrxer.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define SOME ((void *)(uintptr_t)8) /* what an output pointer held before */

static struct ktrxer_error err;

static void message_expected(int rc, int code)
{
	assert_int_equal(rc, code);
	assert_int_equal(err.code, code);
	assert_true(err.text[0]);
	memset(&err, 0, sizeof err);
}

/*
 * Each open function with a struct of options. `make` returns what the function returns and gives back what it left in
 * *out.
 */
struct opener {
	const char *name;
	int (*make)(const void *options, void **out);
	size_t known, least; /* sizes of the struct now, and of its first version */
};

static int make_krx(const void *options, void **out)
{
	struct krx_rule rule = { 0 };

	assert_int_equal(krx_rule_parse(&rule, "capture udp from any to any:9", NULL), 0);
	return krx_open((struct krx **)out, options, &rule, 1, &err);
}

static int make_schedule(const void *options, void **out)
{
	return ktrxer_schedule_new((struct ktrxer_schedule **)out, options, &err);
}

static int make_template(const void *options, void **out)
{
	return ktx_template_new((struct ktx_template **)out, options, &err);
}

static int make_path(const void *options, void **out)
{
	struct ktrxer_path path;

	*out = NULL;
	return ktrxer_path_resolve(&path, options, &err);
}

static int make_frame(const void *options, void **out)
{
	uint8_t frame[64];
	int rc = ktrxer_frame_build(frame, sizeof frame, options);

	*out = NULL;
	assert_int_equal(ktrxer_frame_header_length(options), rc);
	err.code = rc; /* no message: the caller has one struct and one reason */
	err.text[0] = '-';
	return rc;
}

#define END_OF(type, field) (offsetof(struct type, field) + sizeof ((struct type *)0)->field)

static int make_tx(const void *options, void **out)
{
	return ktx_open((struct ktx **)out, options, &err);
}

static int make_range(const void *options, void **out)
{
	*out = NULL;
	return ktx_template_send(NULL, NULL, (struct ktx_range *)(uintptr_t)options, &err);
}

static const struct opener openers[] = {
	{ "ktx_open", make_tx, sizeof(struct ktx_options), END_OF(ktx_options, cpu) },
	{ "ktx_template_send", make_range, sizeof(struct ktx_range), END_OF(ktx_range, threads) },
	{ "krx_open", make_krx, sizeof(struct krx_options), END_OF(krx_options, see_outgoing) },
	{ "ktrxer_schedule_new", make_schedule, sizeof(struct ktrxer_schedule_options),
	  END_OF(ktrxer_schedule_options, offsets) },
	{ "ktx_template_new", make_template, sizeof(struct ktx_template_options),
	  END_OF(ktx_template_options, every_combination) },
	{ "ktrxer_path_resolve", make_path, sizeof(struct ktrxer_path_options),
	  END_OF(ktrxer_path_options, timeout_ms) },
	{ "ktrxer_frame_build", make_frame, sizeof(struct ktrxer_frame_spec),
	  offsetof(struct ktrxer_frame_spec, payload) },
};

static int make(const struct opener *o, const void *options)
{
	void *out = SOME;
	int rc = o->make(options, &out);

	assert_null(out);
	return rc;
}

TEST(one_policy_for_size)
{
	union {
		size_t size;
		uint8_t bytes[512];
	} options;

	for (size_t i = 0; i < sizeof openers / sizeof *openers; i++) {
		const struct opener *o = &openers[i];

		message_expected(make(o, NULL), -EINVAL);
		for (size_t size = 0; size < o->least; size++) {
			memset(&options, 0, sizeof options);
			options.size = size;
			message_expected(make(o, &options), -EINVAL);
		}
		/* A newer caller is refused where an unknown byte is set, wherever it is. */
		for (size_t at = o->known; at < sizeof options; at += 7) {
			memset(&options, 0, sizeof options);
			options.size = sizeof options;
			options.bytes[at] = 1;
			message_expected(make(o, &options), -E2BIG);
		}
	}
}

/* Each field of the options that holds one value of an enumeration. */
struct choice {
	const char *message; /* of a refusal, with the value */
	int (*make)(const void *options, void **out);
	const void *valid; /* options whose other fields are valid */
	size_t size, at;   /* of these options; of the field in them */
	int least, most;   /* values that this version knows; 0 besides, where it is the default */
};

static int make_vary(const void *vary, void **out)
{
	static const uint8_t frame[60] = { [12] = 0x88, [13] = 0xb5 };
	struct ktx_template_options options = KTX_TEMPLATE_OPTIONS_INIT;

	options.frame = frame;
	options.length = sizeof frame;
	options.link = KTRXER_LINK_ETHERNET;
	options.fields = vary;
	options.field_count = 1;
	return ktx_template_new((struct ktx_template **)out, &options, &err);
}

static int make_rule(const void *rule, void **out)
{
	const struct krx_options options = KRX_OPTIONS_INIT;

	return krx_open((struct krx **)out, &options, rule, 1, &err);
}

#define CHOICE(message, make, valid, field, least, most)                                                          \
	{ message, make, &(valid), sizeof(valid), (size_t)((const char *)&(valid).field - (const char *)&(valid)), \
	  least, most }

TEST(values_out_of_range_are_refused)
{
	static const uint8_t frame[60] = { [12] = 0x88, [13] = 0xb5 };
	static const int far_out[] = { 31, 32, 33, 255, 256, 65536, INT_MAX, -1, INT_MIN };
	const struct ktrxer_path path = { .device.link = KTRXER_LINK_ETHERNET,
					  .source = { AF_INET, { 192, 0, 2, 1 }, 0 },
					  .to = { AF_INET, { 192, 0, 2, 2 }, 0 } };
	struct ktx_options tx = KTX_OPTIONS_INIT;
	struct ktrxer_schedule_options schedule = KTRXER_SCHEDULE_OPTIONS_INIT;
	struct ktx_template_options template = KTX_TEMPLATE_OPTIONS_INIT;
	struct ktrxer_frame_spec spec = KTRXER_FRAME_SPEC_INIT;
	const struct ktx_vary vary = { .field = KTX_FIELD_BYTES, .how = KTX_VARY_COUNTER, .at = 20, .width = 4 };
	struct krx_rule rule = { 0 };
	const struct choice choices[] = {
		CHOICE("purpose %d", make_tx, tx, purpose, 0, KTX_FOR_RATE),
		CHOICE("wait %d", make_tx, tx, wait, 0, KTX_WAIT_SLEEP),
		CHOICE("late %d", make_tx, tx, late, 0, KTX_LATE_SHIFT),
		CHOICE("reports %d", make_tx, tx, reports, 0, KTX_REPORT_NONE),
		CHOICE("kind %d", make_schedule, schedule, kind, KTRXER_SCHEDULE_PERIODIC, KTRXER_SCHEDULE_LIST),
		CHOICE("link %d", make_template, template, link, KTRXER_LINK_ETHERNET, KTRXER_LINK_RAW_IP),
		CHOICE("field %d", make_vary, vary, field, 0, KTX_FIELD_PAYLOAD),
		CHOICE("way (%d)", make_vary, vary, how, KTX_VARY_COUNTER, KTX_VARY_TABLE),
		CHOICE("operation number %d", make_rule, rule, op, KRX_CAPTURE, KRX_FORWARD),
		CHOICE(NULL, make_frame, spec, link, 0, KTRXER_LINK_RAW_IP),
	};
	void *out;

	tx.engine = "no such engine"; /* valid options come as far as this */
	schedule.kind = KTRXER_SCHEDULE_PERIODIC;
	schedule.gap_num = 5;
	template.frame = frame;
	template.length = sizeof frame;
	template.link = KTRXER_LINK_ETHERNET;
	spec.path = &path;
	spec.proto = KTRXER_UDP;
	assert_int_equal(krx_rule_parse(&rule, "capture udp from any to any:9", &err), 0);
	assert_int_equal(make_tx(&tx, &out), -EINVAL);
	assert_non_null(strstr(err.text, "no such engine"));
	assert_int_equal(make_schedule(&schedule, &out), 0);
	ktrxer_schedule_free(out);
	assert_int_equal(make_template(&template, &out), 0);
	ktx_template_free(out);
	assert_int_equal(make_vary(&vary, &out), 0);
	ktx_template_free(out);
	for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
		const struct choice *c = &choices[i];

		for (size_t n = 0; n < 2 + sizeof far_out / sizeof *far_out; n++) {
			const int value = n == 0 ? c->most + 1 : n == 1 ? c->least - 1 : far_out[n - 2];
			uint8_t options[512];
			char words[40];

			memcpy(options, c->valid, c->size);
			memcpy(options + c->at, &value, sizeof value);
			out = SOME;
			memset(&err, 0, sizeof err);
			assert_int_equal(c->make(options, &out), -EINVAL);
			assert_null(out);
			if (!c->message)
				continue;
			snprintf(words, sizeof words, c->message, value);
			if (!strstr(err.text, words))
				fail_msg("'%s' does not contain '%s'", err.text, words);
		}
	}
	memset(&err, 0, sizeof err);
}

/* A caller of the first version, with any bytes behind its struct, means the same as one of today with zeros there. */
TEST(a_smaller_size_means_zeros)
{
	static const uint8_t frame[60] = { [12] = 0x88, [13] = 0xb5 };
	struct ktrxer_path path = { .device.link = KTRXER_LINK_ETHERNET,
				    .source = { AF_INET, { 192, 0, 2, 1 }, 0 },
				    .to = { AF_INET, { 192, 0, 2, 2 }, 0 } };
	struct ktrxer_schedule_options schedule = KTRXER_SCHEDULE_OPTIONS_INIT;
	struct ktx_template_options template = KTX_TEMPLATE_OPTIONS_INIT;
	struct ktrxer_frame_spec spec = KTRXER_FRAME_SPEC_INIT;
	struct ktrxer_schedule *s;
	uint8_t room[64], again[64];
	struct ktx_template *t;
	int length;

	schedule.kind = KTRXER_SCHEDULE_PERIODIC;
	schedule.gap_num = 5;
	schedule.size = END_OF(ktrxer_schedule_options, offsets);
	assert_int_equal(ktrxer_schedule_new(&s, &schedule, &err), 0);
	ktrxer_schedule_free(s);
	template.frame = frame;
	template.length = sizeof frame;
	template.link = KTRXER_LINK_ETHERNET;
	template.size = END_OF(ktx_template_options, every_combination);
	assert_int_equal(ktx_template_new(&t, &template, &err), 0);
	ktx_template_free(t);
	spec.path = &path;
	spec.proto = KTRXER_UDP;
	length = ktrxer_frame_build(room, sizeof room, &spec);
	assert_int_equal(length, 42);
	spec.link = KTRXER_LINK_RAW_IP; /* behind the first version */
	spec.size = END_OF(ktrxer_frame_spec, payload_length);
	assert_int_equal(ktrxer_frame_build(again, sizeof again, &spec), length);
	assert_memory_equal(room, again, (size_t)length);
	spec.size = sizeof spec;
	assert_int_equal(ktrxer_frame_build(again, sizeof again, &spec), length - 14);
}

TEST(null_is_refused)
{
	const struct krx_options options = KRX_OPTIONS_INIT;
	const struct ktrxer_schedule_options schedule = KTRXER_SCHEDULE_OPTIONS_INIT;
	const struct ktx_template_options template = KTX_TEMPLATE_OPTIONS_INIT;
	const struct ktrxer_path_options way = KTRXER_PATH_OPTIONS_INIT;
	const struct krx_session session = { 0 };
	const struct ktrxer_addr none = { 0 };
	struct krx_options several = KRX_OPTIONS_INIT;
	struct ktrxer_deadline deadline;
	struct ktx_options transmitter = KTX_OPTIONS_INIT;
	struct ktx *tx = SOME;
	struct krx *rx = SOME;
	struct krx_packet packet;
	struct krx_stats stats;
	struct krx_rule rule = { .op = KRX_CAPTURE };
	struct ktrxer_device device;
	struct ktrxer_qdiscs qdiscs;
	struct ktrxer_addr addr;
	struct ktrxer_hist *hist = ktrxer_hist_new();
	uint8_t frame[64] = { 0 };
	uint16_t port = 7;
	char text[KRX_RULE_TEXT];

	/* Transmitters. */
	message_expected(ktx_open(NULL, &transmitter, &err), -EINVAL);
	for (int bit = 6; bit < 32; bit++) { /* flags that this version does not know */
		transmitter.flags = 1u << bit;
		message_expected(ktx_open(&tx, &transmitter, &err), -EINVAL);
		assert_null(tx);
		tx = SOME;
	}
	ktx_close(NULL);
	/* Receivers. */
	message_expected(krx_open(NULL, &options, &rule, 1, &err), -EINVAL);
	message_expected(krx_open(&rx, &options, NULL, 1, &err), -EINVAL);
	assert_null(rx);
	rx = SOME;
	message_expected(krx_open(&rx, &options, &rule, 0, &err), -EINVAL);
	assert_null(rx);
	rule.op = 99;
	message_expected(krx_open(&rx, &options, &rule, 1, &err), -EINVAL);
	rule.op = KRX_CAPTURE;
	several.session_count = 1;
	message_expected(krx_open(&rx, &several, &rule, 1, &err), -EINVAL);
	several.session_count = UINT32_MAX;
	several.sessions = &session;
	message_expected(krx_open(&rx, &several, &rule, 1, &err), -EINVAL);
	assert_int_equal(krx_open(&rx, NULL, NULL, 0, NULL), -EINVAL);
	krx_close(NULL);
	assert_int_equal(krx_fd(NULL), -EINVAL);
	assert_int_equal(krx_next(NULL, &packet), -EINVAL);
	assert_int_equal(krx_stats(NULL, &stats, NULL, 0), -EINVAL);
	message_expected(krx_rule_parse(NULL, "drop udp from any to any", &err), -EINVAL);
	message_expected(krx_rule_parse(&rule, NULL, &err), -EINVAL);
	assert_string_equal(krx_rule_format(NULL, text), "");
	assert_string_equal(krx_rule_format(&rule, NULL), "");
	/* Paths and frames. */
	message_expected(ktrxer_path_resolve(NULL, &way, &err), -EINVAL);
	message_expected(ktrxer_device_get(NULL, "lo", &err), -EINVAL);
	message_expected(ktrxer_device_get(&device, NULL, &err), -EINVAL);
	message_expected(ktrxer_device_list(NULL, 1, &err), -EINVAL);
	message_expected(ktrxer_device_list(&device, -1, &err), -EINVAL);
	/* qemu-user translates only a part of rtnetlink between the orders of bytes. */
	assert_true(getenv("KTRXER_EMULATED") || ktrxer_device_list(NULL, 0, &err) >= 0); /* only counts */
	assert_int_equal(ktrxer_device_qdiscs(NULL, &device), -EINVAL);
	assert_int_equal(ktrxer_device_qdiscs(&qdiscs, NULL), -EINVAL);
	assert_int_equal(ktrxer_frame_build(NULL, 64, NULL), -EINVAL);
	assert_int_equal(ktrxer_frame_header_length(NULL), -EINVAL);
	assert_int_equal(ktrxer_frame_checksum(NULL, 64, KTRXER_LINK_ETHERNET), -EINVAL);
	/* Schedules. */
	message_expected(ktrxer_schedule_new(NULL, &schedule, &err), -EINVAL);
	ktrxer_schedule_free(NULL);
	assert_int_equal(ktrxer_schedule_next(NULL, &deadline), -EINVAL);
	/* Templates. */
	message_expected(ktx_template_new(NULL, &template, &err), -EINVAL);
	ktx_template_free(NULL);
	assert_int_equal(ktx_template_length(NULL), 0);
	assert_int_equal(ktx_template_space(NULL), 0);
	ktx_template_fill(NULL, frame, 1);
	/* Histograms. */
	ktrxer_hist_record(NULL, 1);
	ktrxer_hist_merge(NULL, hist);
	ktrxer_hist_merge(hist, NULL);
	assert_int_equal(ktrxer_hist_count(NULL), 0);
	assert_int_equal(ktrxer_hist_quantile(NULL, 500000), 0);
	assert_int_equal(ktrxer_hist_min(NULL), 0);
	assert_int_equal(ktrxer_hist_max(NULL), 0);
	assert_true(ktrxer_hist_mean(NULL) == 0);
	assert_int_equal(ktrxer_hist_count(hist), 0);
	ktrxer_hist_free(NULL);
	ktrxer_hist_free(hist);
	/* Addresses and clocks. */
	assert_int_equal(ktrxer_addr_parse(NULL, "192.0.2.1"), -EINVAL);
	assert_int_equal(ktrxer_addr_parse(&addr, NULL), -EINVAL);
	assert_int_equal(ktrxer_addr_port_parse(NULL, &port, "192.0.2.1"), -EINVAL);
	assert_int_equal(ktrxer_addr_port_parse(&addr, NULL, "192.0.2.1"), -EINVAL);
	assert_int_equal(ktrxer_addr_port_parse(&addr, &port, NULL), -EINVAL);
	assert_string_equal(ktrxer_addr_format(NULL, text), "");
	assert_string_equal(ktrxer_addr_format(&none, NULL), "");
	assert_false(ktrxer_addr_equal(NULL, &none));
	assert_false(ktrxer_addr_equal(&none, NULL));
	assert_false(ktrxer_addr_is_local_use(NULL));
	ktrxer_clock_pair_read(NULL);
}

/* The number of engines, however many of them there is room for. */
TEST(engines_are_counted)
{
	struct ktx_engine_info engines[16] = { 0 };
	const int n = ktx_engines(NULL, 0, NULL);

	assert_in_range(n, 2, 16);
	assert_int_equal(ktx_engines(NULL, 1, NULL), -EINVAL);
	assert_int_equal(ktx_engines(engines, -1, NULL), -EINVAL);
	assert_false(ktx_engine_by_stack(NULL, false));
	assert_int_equal(ktx_engines(engines, 1, NULL), n);
	assert_non_null(engines[0].name);
	assert_null(engines[1].name);
	assert_int_equal(ktx_engines(engines, 16, NULL), n);
	assert_non_null(engines[n - 1].name);
}
