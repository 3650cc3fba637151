/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Values of --vary: their meaning, and the one line about a wrong value. */
#include "bytes.h"
#include "cm.h"
#include "send_vary.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct ktx_vary parse(struct vary *vary, const char *text, uint8_t family)
{
	struct ktrxer_error err = { 0 };
	int rc = vary_add(vary, text, family, &err);

	if (rc < 0)
		print_message("%s\n", err.text);
	assert_int_equal(rc, 0);
	return vary->fields[vary->count - 1];
}

TEST(ranges_of_numbers)
{
	static const struct {
		const char *text;
		struct ktx_vary is;
		/* clang-format off */
	} cases[] = {
		{ "dst-port=counter:1000-2000",
		  { .field = KTX_FIELD_DESTINATION_PORT, .how = KTX_VARY_COUNTER, .from = 1000, .step = 1,
		    .count = 1001 } },
		{ "src-port=random:1024-65535@7",
		  { .field = KTX_FIELD_SOURCE_PORT, .how = KTX_VARY_RANDOM, .from = 1024, .step = 1, .count = 64512,
		    .seed = 7 } },
		{ "ip-id=counter:0-9/3*10",
		  { .field = KTX_FIELD_IP_ID, .how = KTX_VARY_COUNTER, .step = 3, .count = 4, .every = 10 } },
		{ "ttl=counter", { .field = KTX_FIELD_TTL, .how = KTX_VARY_COUNTER, .step = 1 } },
		{ "tos=counter:4", { .field = KTX_FIELD_TOS, .how = KTX_VARY_COUNTER, .from = 4, .step = 1 } },
		{ "flow-label=counter:0x10-1k",
		  { .field = KTX_FIELD_FLOW_LABEL, .how = KTX_VARY_COUNTER, .from = 16, .step = 1, .count = 985 } },
		{ "payload+8.8=random:@3",
		  { .field = KTX_FIELD_PAYLOAD, .how = KTX_VARY_RANDOM, .at = 8, .width = 8, .step = 1, .seed = 3 } },
		{ "payload+12=counter",
		  { .field = KTX_FIELD_PAYLOAD, .how = KTX_VARY_COUNTER, .at = 12, .width = 4, .step = 1 } },
		{ "frame+6.2=counter:5-5",
		  { .field = KTX_FIELD_BYTES, .how = KTX_VARY_COUNTER, .at = 6, .width = 2, .from = 5, .step = 1,
		    .count = 1 } },
		{ "payload+0.8=counter:0-18446744073709551615",
		  { .field = KTX_FIELD_PAYLOAD, .how = KTX_VARY_COUNTER, .width = 8, .step = 1 } },
	};
	/* clang-format on */

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct vary vary = { 0 };
		const struct ktx_vary got = parse(&vary, cases[i].text, AF_INET), *is = &cases[i].is;

		assert_int_equal(got.field, is->field);
		assert_int_equal(got.how, is->how);
		assert_int_equal(got.at, is->at);
		assert_int_equal(got.width, is->width);
		assert_int_equal(got.from, is->from);
		assert_int_equal(got.step, is->step);
		assert_int_equal(got.count, is->count);
		assert_int_equal(got.every, is->every);
		assert_int_equal(got.seed, is->seed ? is->seed : 1);
		vary_free(&vary);
	}
}

TEST(ranges_of_addresses)
{
	struct vary vary = { 0 };
	struct ktx_vary got;

	got = parse(&vary, "dst=counter:10.0.0.1-10.0.0.254/2", AF_INET);
	assert_int_equal(got.from, 0x0a000001);
	assert_int_equal(got.count, 127);
	assert_int_equal(got.step, 2);
	got = parse(&vary, "src=random:10.1.0.0/16", AF_INET);
	assert_int_equal(got.from, 0x0a010000);
	assert_int_equal(got.count, 65536);
	got = parse(&vary, "src=counter:10.1.0.9", AF_INET);
	assert_int_equal(got.count, 1);
	got = parse(&vary, "dst=counter:fd00::10-fd00::1f", AF_INET6);
	assert_int_equal(got.from, 0x10);
	assert_int_equal(got.count, 16);
	got = parse(&vary, "dst=counter:fd00:0:0:9::/64", AF_INET6);
	assert_int_equal(got.count, 0); /* 2^64 */
	got = parse(&vary, "dst=counter:fd00::100/120", AF_INET6);
	assert_int_equal(got.from, 0x100);
	assert_int_equal(got.count, 256);
	vary_free(&vary);
}

TEST(tables)
{
	char path[] = "/tmp/ktrxer-vary-XXXXXX", text[64];
	static const char lines[] = "# ports\n80\n\n 443 # https\r\n7\n";
	struct vary vary = { 0 };
	struct ktx_vary got;
	int fd = mkstemp(path);

	got = parse(&vary, "dst-port=table:80,0x1bb", AF_INET);
	assert_int_equal(got.count, 2);
	assert_memory_equal(got.table, "\0\x50\1\xbb", 4);
	got = parse(&vary, "src=table:10.0.0.1,9.8.7.6*4", AF_INET);
	assert_int_equal(got.every, 4);
	assert_memory_equal(got.table, "\12\0\0\1\11\10\7\6", 8);
	got = parse(&vary, "dst=table:fd00::1", AF_INET6);
	assert_int_equal(got.table[15], 1);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, lines, sizeof lines - 1), sizeof lines - 1);
	close(fd);
	snprintf(text, sizeof text, "src-port=table:@%s", path);
	got = parse(&vary, text, AF_INET);
	assert_int_equal(got.count, 3);
	assert_memory_equal(got.table, "\0\x50\1\xbb\0\7", 6);
	unlink(path);
	vary_free(&vary);
}

TEST(nonsense_is_refused_with_what_to_type)
{
	static const struct {
		const char *text, *words;
		/* clang-format off */
	} cases[] = {
		{ "", "FIELD=counter:FROM-TO" }, { "dst-port", "FIELD=counter:FROM-TO" },
		{ "=", "fields are src, dst" },
		{ "port=counter", "fields are src, dst" }, { "dst-port=", "FIELD=counter" },
		{ "dst-port=up:1-2", "FIELD=counter" },
		{ "dst-port=counter:", "a number is missing" }, { "dst-port=counter:2-1", "ends before it begins" },
		{ "dst-port=counter:1-9/0", "step of 0" }, { "dst-port=counter:1/0", "step of 0" },
		{ "dst-port=counter:a-9", "a" },
		{ "dst-port=counter:1-9*0", "never changes" }, { "dst-port=counter:1-9*", "a number is missing" },
		{ "dst-port=random:1-9@", "a number is missing" }, { "dst-port=table", "FIELD=counter" },
		{ "dst-port=table:", "a number is missing" },
		{ "dst-port=table:1,,2", "a number is missing" }, { "dst-port=table:80,99999", "does not fit" },
		{ "dst-port=table:@/no/such/file", "No such file" }, { "dst-port=table:@", "one value a line" },
		{ "dst=counter", "which addresses?" },
		{ "dst=random:@5", "which addresses?" }, { "dst=counter:10.0.0.1-fd00::1", "HOST is IPv4" },
		{ "dst=counter:10.0.0.1/24", "behind the prefix" },
		{ "dst=counter:10.0.0.0/33", "1 to 32" }, { "dst=counter:0.0.0.0/0", "1 to 32" },
		{ "dst=counter:10.0.0.300-10.0.0.9", "is no address" },
		{ "payload+8.3=counter", "1, 2, 4 or 8" }, { "payload=counter", "fields are" },
		{ "ttl+1=counter", "fields are" },
		{ "payload+=counter", "a number is missing" }, { "frame+70000=counter", "behind every frame" },
	};
	/* clang-format on */

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct ktrxer_error err = { 0 };
		struct vary vary = { 0 };
		int rc = vary_add(&vary, cases[i].text, AF_INET, &err);

		if (rc >= 0 || !strstr(err.text, cases[i].words))
			print_message("'%s': %d '%s'\n", cases[i].text, rc, err.text);
		assert_true(rc < 0);
		assert_non_null(strstr(err.text, cases[i].words));
		assert_null(strchr(err.text, '\n'));
		vary_free(&vary);
	}
}

TEST(more_fields_than_there_is_room_for)
{
	struct ktrxer_error err = { 0 };
	struct vary vary = { 0 };

	for (int i = 0; i < VARY_FIELDS; i++)
		parse(&vary, "dst-port=table:1", AF_INET);
	assert_int_equal(vary_add(&vary, "ttl=counter", AF_INET, &err), -E2BIG);
	vary_free(&vary);
}

TEST(destinations_are_guarded)
{
	static const struct {
		const char *text;
		uint8_t family;
		int rc;
		/* clang-format off */
	} cases[] = {
		{ "dst=counter:10.0.0.1-10.255.0.0", AF_INET, 0 },
		{ "dst=counter:10.255.255.0-11.0.0.1", AF_INET, -EPERM },
		{ "dst=random:192.168.0.0/16", AF_INET, 0 },
		{ "dst=counter:192.167.255.255-192.168.0.9", AF_INET, -EPERM },
		{ "dst=counter:9.255.255.255-10.0.0.9/100000", AF_INET, -EPERM },
		{ "dst=counter:8.8.8.8", AF_INET, -EPERM },
		{ "dst=counter:9.0.0.0-200.0.0.0", AF_INET, -EPERM }, { "dst=table:10.0.0.1,8.8.8.8", AF_INET, -EPERM },
		{ "dst=table:10.0.0.1,127.0.0.1", AF_INET, 0 }, { "src=counter:8.8.8.8-9.9.9.9", AF_INET, 0 },
		{ "dst=counter:fd00::/64", AF_INET6, 0 }, { "dst=counter:2600::1-2600::5", AF_INET6, -EPERM },
		{ "dst=counter:::1-::5", AF_INET6, -EPERM },
		{ "dst=table:fd00::1,2600::1", AF_INET6, -EPERM },
	};
	/* clang-format on */
	const struct opt_rate rate = { 0 };

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct ktrxer_error err = { 0 };
		struct vary vary = { 0 };

		parse(&vary, cases[i].text, cases[i].family);
		if (vary_guard(&vary, &rate, false, &err) != cases[i].rc)
			print_message("%s: %s\n", cases[i].text, err.text);
		assert_int_equal(vary_guard(&vary, &rate, false, &err), cases[i].rc);
		assert_int_equal(vary_guard(&vary, &rate, true, &err), 0);
		vary_free(&vary);
	}
}

TEST(ipv6_ranges_stay_in_the_frame_s_network)
{
	struct ktrxer_addr here, there;
	struct ktrxer_error err = { 0 };
	struct vary vary = { 0 };

	ktrxer_addr_parse(&here, "fd00::1");
	ktrxer_addr_parse(&there, "fd00:0:0:1::1");
	parse(&vary, "dst=counter:fd00:0:0:1::5-fd00:0:0:1::9", AF_INET6);
	assert_int_equal(vary_networks(&vary, &here, &there, &err), 0);
	assert_int_equal(vary_networks(&vary, &there, &here, &err), -EINVAL);
	assert_non_null(strstr(err.text, "HOST"));
	assert_true(vary_has(&vary, KTX_FIELD_DESTINATION));
	assert_false(vary_has(&vary, KTX_FIELD_SOURCE));
	vary_free(&vary);
}
