/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The rules' program in the kernel (BPF_PROG_RUN) against the linear scan here. Needs root and a kernel with XDP; says
 * so otherwise.
 */
#include "cm.h"
#include "random_packets.h"
#include "rules_program.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdlib.h>
#include <sys/mman.h>

extern const unsigned char ktrxer_rules_cases_object[];
extern const size_t ktrxer_rules_cases_object_size;

#define CASES_SIZE ((sizeof(struct rules_case) * RULES_CASES + 4095) / 4096 * 4096)

enum { FRAME_LEAST = 14 /* BPF_PROG_RUN takes no shorter ones; test_rules_classify.c has those */ };

static struct krx_ruleset *ruleset(const struct krx_rule *rules, int count)
{
	struct krx_ruleset *set;

	assert_int_equal(krx_ruleset_new(&set, rules, sizeof(struct krx_rule), count, NULL), 0);
	return set;
}

static int program_as(struct rules_program *program, const struct krx_ruleset *set, uint32_t ring, uint32_t snap,
		      bool plain)
{
	const struct rules_setup setup = { .rules = set,
					   .ring_bytes = ring,
					   .snap = snap,
					   .link = KTRXER_LINK_ETHERNET,
					   .traced = true,
					   .plain = plain };
	struct ktrxer_error err = { 0 };
	int rc = ktrxer_rules_program_open(program, &setup, &err);

	if (rc < 0)
		print_message("%s\n", err.text);
	else
		assert_int_equal(program->frags, !plain);
	return rc;
}

static int program_of(struct rules_program *program, const struct krx_ruleset *set, uint32_t ring, uint32_t snap)
{
	return program_as(program, set, ring, snap, false);
}

static bool have_kernel;
static uint64_t begun_ns;

static int look(void **state)
{
	struct krx_rule rule = { .op = KRX_FORWARD };
	struct krx_ruleset *set = ruleset(&rule, 1);
	struct rules_program program;
	int rc = program_of(&program, set, 4096, 0);

	(void)state;
	begun_ns = ktrxer_now_ns();
	have_kernel = rc == 0;
	if (!rc)
		ktrxer_rules_program_close(&program);
	krx_ruleset_free(set);
	/* Root may load programs: then a refused program is a failure of each test below. */
	if (rc && rc != -EPERM)
		have_kernel = true;
	return 0;
}

struct cm_hooks cm_hooks = { .before_all = look };

#define NEEDS_KERNEL()                                                             \
	do {                                                                       \
		if (!have_kernel)                                                  \
			cm_skip("no privilege to load XDP programs: run as root"); \
	} while (0)

static const uint32_t actions[] = { XDP_PASS, XDP_PASS, XDP_DROP, XDP_DROP, XDP_PASS };

/* If the packet was to be kept, the ring's next record is that packet. */
static void check_record(struct rules_program *program, const uint8_t *frame, uint32_t length, int rule, bool kept)
{
	const struct rules_record *record;
	uint32_t size;

	if (!kept)
		return;
	record = ktrxer_bpf_ring_look(&program->ring, &size);
	assert_non_null(record);
	assert_true(size >= sizeof *record + record->kept);
	assert_int_equal(record->length, length);
	assert_int_equal(record->kept, length);
	assert_int_equal(record->stamp.rule, rule);
	assert_int_equal(record->stamp.nic_ns, 0);
	assert_true(record->stamp.mono_ns >= begun_ns && record->stamp.mono_ns <= ktrxer_now_ns());
	assert_memory_equal(record->data, frame, length);
	ktrxer_bpf_ring_take(&program->ring);
}

static struct rules_case *cases_map(struct rules_program *program)
{
	struct bpf_map *map = bpf_object__find_map_by_name(program->object, "cases");
	void *at = mmap(NULL, CASES_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);

	assert_true(at != MAP_FAILED);
	return at;
}

static void one_ruleset(struct chance *c, const struct krx_rule *rules, int count, uint64_t *met, uint64_t *missed,
			uint64_t by_op[5])
{
	const struct rules_object object = { ktrxer_rules_cases_object, ktrxer_rules_cases_object_size, "rules_cases" };
	struct krx_ruleset *set = ruleset(rules, count);
	const struct rules_setup setup = {
		.rules = set, .ring_bytes = 1 << 20, .link = KTRXER_LINK_ETHERNET, .traced = true, .object = &object
	};
	const uint8_t first[RULES_CASE_MOST] = { 0 };
	struct rules_program program;
	struct rules_case *cases;
	struct rules_trial trial;
	uint64_t matched[200] = { 0 };
	uint32_t size;

	assert_int_equal(ktrxer_rules_program_open(&program, &setup, NULL), 0);
	cases = cases_map(&program);
	for (uint32_t i = 0; i < RULES_CASES; i++) {
		do {
			memset(cases[i].data, 0, sizeof cases[i].data);
			cases[i].length = chance_frame(c, cases[i].data, KTRXER_LINK_ETHERNET);
		} while (cases[i].length < FRAME_LEAST);
	}
	assert_int_equal(ktrxer_rules_program_try(&program, first, sizeof first, RULES_CASES, &trial), 0);
	for (uint32_t i = 0; i < RULES_CASES; i++) {
		struct ktrxer_packet_view view;
		int want, op;

		ktrxer_packet_parse(&view, cases[i].data, cases[i].length, KTRXER_LINK_ETHERNET);
		want = krx_ruleset_match(set, &view);
		op = want < 0 ? KRX_FORWARD : (int)rules[want].op;
		if ((int)cases[i].decided - 1 != want || cases[i].action != actions[op])
			fail_msg("packet %u: rule %d and action %u, not rule %d and action %u", i,
				 (int)cases[i].decided - 1, cases[i].action, want, actions[op]);
		check_record(&program, cases[i].data, cases[i].length, want,
			     op == KRX_CAPTURE || op == KRX_CAPTURE_DROP);
		*met += want >= 0;
		*missed += want < 0;
		if (want >= 0) {
			matched[want]++;
			by_op[op]++;
		}
	}
	assert_null(ktrxer_bpf_ring_look(&program.ring, &size));
	for (int i = 0; i < count; i++) {
		const bool drops = rules[i].op == KRX_DROP || rules[i].op == KRX_CAPTURE_DROP;
		struct rules_counts counts;

		assert_int_equal(ktrxer_rules_program_counts(&program, (uint32_t)i, &counts), 0);
		assert_int_equal(counts.matched, matched[i]);
		assert_int_equal(counts.dropped, drops ? matched[i] : 0);
	}
	munmap(cases, CASES_SIZE);
	ktrxer_rules_program_close(&program);
	krx_ruleset_free(set);
}

TEST(equals_a_linear_scan_in_the_kernel)
{
	struct chance c = { .state = 4711 };
	struct krx_rule rules[200];
	uint64_t met = 0, missed = 0, by_op[5] = { 0 };

	NEEDS_KERNEL();
	for (int round = 0; round < 30; round++) {
		int count = (int)(1 + chance_next(&c, round % 2 ? 199 : 12));

		for (int i = 0; i < count; i++) {
			rules[i] = chance_rule(&c, (uint32_t)round % 11);
			rules[i].op = (enum krx_op)(1 + chance_next(&c, 4));
		}
		one_ruleset(&c, rules, count, &met, &missed, by_op);
	}
	/* The test is worth something only if all of this happens often. */
	assert_true(met > 10000 && missed > 5000);
	for (int op = KRX_CAPTURE; op <= KRX_FORWARD; op++)
		assert_true(by_op[op] > 1000);
}

/* The program as it is attached, not its twin that takes cases. */
TEST(decides_one_packet_at_a_time)
{
	static const char *const texts[] = { "capture udp from any to any:1", "drop udp from any to any:2",
					     "capture+drop udp from any to any:3", "forward udp from any to any:4",
					     "drop udp from 10.0.0.1:9 to 10.0.0.2:1" };
	static const int decided[] = { -1, 0, 1, 2, 3, -1 };
	struct krx_rule rules[5];
	struct rules_program program;
	struct krx_ruleset *set;
	struct rules_trial trial;
	uint8_t frame[64] = { 0 };

	NEEDS_KERNEL();
	for (int i = 0; i < 5; i++)
		assert_int_equal(krx_rule_parse(&rules[i], texts[i], NULL), 0);
	rules[4].priority = 0;
	set = ruleset(rules, 5);
	assert_int_equal(program_of(&program, set, 65536, 0), 0);
	memcpy(frame + 12, "\x08\x00\x45\x00\x00\x1c\x00\x00\x00\x00\x40\x11\x00\x00\x0a\x00\x00\x01\x0a\x00\x00\x02",
	       22);
	for (uint16_t port = 0; port <= 5; port++) {
		const int want = decided[port], op = want < 0 ? KRX_FORWARD : (int)rules[want].op;

		store_be16(frame + 34, 9);
		store_be16(frame + 36, port);
		assert_int_equal(ktrxer_rules_program_try(&program, frame, 42, 1, &trial), 0);
		assert_int_equal(trial.decided, want);
		assert_int_equal(trial.action, actions[op]);
		check_record(&program, frame, 42, want, op == KRX_CAPTURE || op == KRX_CAPTURE_DROP);
	}
	ktrxer_rules_program_close(&program);
	krx_ruleset_free(set);
}

/* The longest list is full, and the table of whole 5-tuples. */
TEST(takes_full_tables)
{
	const int count = 16384;
	struct krx_rule *rules = calloc((size_t)count, sizeof *rules);
	struct rules_program program;
	struct krx_ruleset *set;
	struct rules_trial trial;
	uint8_t frame[64] = { 0 };

	NEEDS_KERNEL();
	assert_non_null(rules);
	for (int i = 0; i < count; i++) {
		if (i < (int)RULES_LIST_MAX) {
			rules[i] = (struct krx_rule){
				.op = KRX_FORWARD, .proto = 17, .to_port = (uint16_t)(1 + i), .to_prefix = 24
			};
			assert_int_equal(ktrxer_addr_parse(&rules[i].to, "10.9.0.0"), 0);
			continue;
		}
		rules[i] = (struct krx_rule){ .op = KRX_DROP,
					      .proto = 17,
					      .from_port = (uint16_t)(1 + i),
					      .to_port = 7,
					      .from_prefix = 32,
					      .to_prefix = 32 };
		assert_int_equal(ktrxer_addr_parse(&rules[i].from, "10.0.0.1"), 0);
		assert_int_equal(ktrxer_addr_parse(&rules[i].to, "10.0.0.2"), 0);
	}
	set = ruleset(rules, count);
	assert_int_equal(program_of(&program, set, 4096, 0), 0);

	memcpy(frame + 12, "\x08\x00\x45\x00\x00\x1c\x00\x00\x00\x00\x40\x11\x00\x00\x0a\x00\x00\x01\x0a\x00\x00\x02",
	       22);
	store_be16(frame + 36, 7);
	for (int i = RULES_LIST_MAX; i < count; i += 3201) {
		store_be16(frame + 34, (uint16_t)(1 + i));
		assert_int_equal(ktrxer_rules_program_try(&program, frame, 42, 1, &trial), 0);
		assert_int_equal(trial.decided, i);
		assert_int_equal(trial.action, XDP_DROP);
	}
	memcpy(frame + 30, "\x0a\x09\x00\x05", 4);
	store_be16(frame + 36, RULES_LIST_MAX);
	assert_int_equal(ktrxer_rules_program_try(&program, frame, 42, 1, &trial), 0);
	assert_int_equal(trial.decided, RULES_LIST_MAX - 1);
	store_be16(frame + 36, RULES_LIST_MAX + 1);
	assert_int_equal(ktrxer_rules_program_try(&program, frame, 42, 1, &trial), 0);
	assert_int_equal(trial.decided, -1);
	ktrxer_rules_program_close(&program);
	krx_ruleset_free(set);
	free(rules);
}

TEST(counts_what_finds_no_room)
{
	struct krx_rule rule = { .op = KRX_CAPTURE };
	struct krx_ruleset *set = ruleset(&rule, 1);
	struct rules_program program;
	struct rules_trial trial;
	struct rules_counts counts;
	uint8_t frame[100] = { 0 };
	uint64_t kept = 0, lost;
	uint32_t size;

	NEEDS_KERNEL();
	assert_int_equal(program_of(&program, set, 4096, 0), 0);
	assert_int_equal(ktrxer_rules_program_try(&program, frame, sizeof frame, 100, &trial), 0);
	for (; ktrxer_bpf_ring_look(&program.ring, &size); kept++)
		ktrxer_bpf_ring_take(&program.ring);
	assert_int_equal(ktrxer_rules_program_lost(&program, &lost), 0);
	assert_int_equal(ktrxer_rules_program_counts(&program, 0, &counts), 0);
	assert_int_equal(counts.matched, 100);
	assert_int_equal(kept + lost, 100);
	assert_true(kept > 10 && lost > 10);
	/* Room again: nothing of the past is in the way. */
	assert_int_equal(ktrxer_rules_program_try(&program, frame, sizeof frame, 1, &trial), 0);
	assert_non_null(ktrxer_bpf_ring_look(&program.ring, &size));
	ktrxer_rules_program_close(&program);
	krx_ruleset_free(set);
}

TEST(keeps_as_much_as_was_requested)
{
	static const uint32_t lengths[] = { 14, 60, 128, 129, 512, 513, 1514, 1600, 1601, 3000 };
	static const uint32_t snaps[] = { 0, 1, 64, 600 };
	struct krx_rule rule = { .op = KRX_CAPTURE };
	struct krx_ruleset *set = ruleset(&rule, 1);
	uint8_t frame[3000];

	NEEDS_KERNEL();
	for (uint32_t i = 0; i < sizeof frame; i++)
		frame[i] = (uint8_t)(i * 7 + i / 256);
	for (size_t way = 0; way < 2 * sizeof snaps / sizeof *snaps; way++) {
		const size_t s = way / 2;
		struct rules_program program;

		/* By the calls of Linux 5.18, and by those that were there before. */
		assert_int_equal(program_as(&program, set, 1 << 17, snaps[s], way % 2), 0);
		for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
			const uint32_t want = snaps[s] && snaps[s] < lengths[i] ? snaps[s] : lengths[i];
			const struct rules_record *record;
			struct rules_trial trial;
			uint32_t size;

			assert_int_equal(ktrxer_rules_program_try(&program, frame, lengths[i], 1, &trial), 0);
			record = ktrxer_bpf_ring_look(&program.ring, &size);
			assert_non_null(record);
			assert_int_equal(record->length, lengths[i]);
			assert_int_equal(record->kept, want);
			assert_memory_equal(record->data, frame, want);
			ktrxer_bpf_ring_take(&program.ring);
		}
		ktrxer_rules_program_close(&program);
	}
	krx_ruleset_free(set);
}
