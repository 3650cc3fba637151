/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * For test_other_headers.py, which compiles this program with headers whose structs of results are shorter or longer
 * than those of the library. The program sends three probes to port 9 of 127.0.0.1, captures them on `lo`, and prints
 * the fields of the results that all three headers have. Status 3: a byte behind a struct was written.
 */
#include <ktrxer.h>

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROBES 3
#define CANARY 0xa5

/* `count` structs with bytes behind them that nothing may write. */
#define GUARDED(type, name, count)      \
	struct {                        \
		type of[count];         \
		uint8_t behind[128];    \
	} name;                         \
	memset(&name, CANARY, sizeof name)
#define CHECKED(name) checked(#name, name.behind, sizeof name.behind)

static void checked(const char *name, const uint8_t *behind, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (behind[i] != CANARY) {
			fprintf(stderr, "%s: byte %zu behind it was written\n", name, i);
			exit(3);
		}
}

static void failed(const char *what, int rc, const struct ktrxer_error *err)
{
	fprintf(stderr, "%s: %d %s\n", what, rc, err->text);
	exit(1);
}

static void send_all(struct ktx *tx, const struct ktrxer_path *path)
{
	struct ktrxer_frame_spec spec = KTRXER_FRAME_SPEC_INIT;
	struct ktrxer_error err = { 0 };
	GUARDED(struct ktx_info, info, 1);

	ktx_info(tx, info.of);
	CHECKED(info);
	printf("engine %s slots %u margin %d\n", info.of->engine, info.of->slots,
	       info.of->wakeup_margin_ns < 1000000000);
	spec.path = path;
	spec.proto = KTRXER_UDP;
	spec.from_port = 40000;
	spec.to_port = 9;
	spec.link = info.of->link;
	for (uint64_t id = 0; id < PROBES; id++) {
		GUARDED(struct ktx_slot, slot, 1);
		int rc = ktx_reserve(tx, slot.of);

		CHECKED(slot);
		if (rc == 0)
			rc = ktrxer_frame_build(slot.of->frame, slot.of->capacity, &spec);
		if (rc > 0)
			rc = ktx_commit(tx, &(struct ktx_probe){ .id = 70 + id, .length = (uint32_t)rc }, &err);
		if (rc < 0)
			failed("a probe", rc, &err);
	}
	if (ktx_drain(tx, ktrxer_now_ns() + 5 * KTRXER_NS_PER_S) < 0)
		failed("ktx_drain", 0, &err);
}

static void results_print(struct ktx *tx)
{
	GUARDED(struct ktx_report, reports, PROBES);
	GUARDED(struct ktx_accounts, accounts, 1);
	GUARDED(struct ktx_network_error, errors, 2);
	int n = ktx_reports(tx, reports.of, PROBES);

	CHECKED(reports);
	for (int i = 0; i < n; i++)
		printf("report %llu status %u tries %u error %d\n", (unsigned long long)reports.of[i].id,
		       reports.of[i].status, reports.of[i].tries, reports.of[i].error);
	ktx_accounts(tx, accounts.of);
	CHECKED(accounts);
	printf("requested %llu sent %llu failed %llu bytes %llu\n", (unsigned long long)accounts.of->requested,
	       (unsigned long long)accounts.of->sent, (unsigned long long)accounts.of->failed,
	       (unsigned long long)accounts.of->bytes);
	for (int left = 2, i; left;) {
		struct pollfd ready = { .fd = ktx_fd(tx), .events = POLLIN };

		i = ktx_network_errors(tx, errors.of, left);
		CHECKED(errors);
		for (int k = 0; k < i; k++)
			printf("network error %d origin %u type %u code %u from family %u\n", errors.of[k].error,
			       errors.of[k].origin, errors.of[k].type, errors.of[k].code, errors.of[k].reporter.family);
		left -= i;
		if (left && poll(&ready, 1, 2000) != 1)
			break;
	}
}

static void packets_print(struct krx *rx)
{
	GUARDED(struct krx_stats, stats, 1);
	GUARDED(struct krx_rule_stats, rules, 2);

	for (int left = PROBES; left;) {
		struct pollfd ready = { .fd = krx_fd(rx), .events = POLLIN };
		GUARDED(struct krx_packet, packet, 1);
		GUARDED(struct ktrxer_frame_view, view, 1);
		int rc = krx_next(rx, packet.of);

		CHECKED(packet);
		if (rc < 0 || (rc == 0 && poll(&ready, 1, 5000) != 1))
			break;
		if (rc != 1)
			continue;
		rc = ktrxer_frame_read(view.of, packet.of->data, packet.of->length, KTRXER_LINK_ETHERNET);
		CHECKED(view);
		printf("packet rule %u length %u of %u clock %u device %u: %d proto %u port %u to %u\n",
		       packet.of->rule, packet.of->length, packet.of->original_length, packet.of->clock,
		       packet.of->device, rc, view.of->proto, view.of->from_port, view.of->to_port);
		left--;
	}
	if (krx_stats(rx, stats.of, rules.of, 2) < 0)
		exit(1);
	CHECKED(stats);
	CHECKED(rules);
	printf("backend %s lost %llu why %d\n", stats.of->backend, (unsigned long long)stats.of->lost,
	       stats.of->why[0] != '\0');
	for (int i = 0; i < 2; i++)
		printf("rule %d matched %llu captured %llu\n", i, (unsigned long long)rules.of[i].matched,
		       (unsigned long long)rules.of[i].captured);
}

static void others_print(void)
{
	struct ktrxer_schedule_options options = KTRXER_SCHEDULE_OPTIONS_INIT;
	struct ktrxer_schedule *schedule;
	GUARDED(struct ktrxer_clock_pair, clocks, 1);
	GUARDED(struct ktx_engine_info, engines, 4);
	GUARDED(struct ktrxer_device, devices, 1);
	GUARDED(struct ktrxer_qdiscs, qdiscs, 1);
	GUARDED(struct ktrxer_deadline, due, 1);
	struct ktrxer_error err = { 0 };

	ktrxer_clock_pair_read(clocks.of);
	CHECKED(clocks);
	printf("clocks %d %d\n", clocks.of->mono_ns <= ktrxer_now_ns(), clocks.of->real_ns > 0);
	if (ktx_engines(engines.of, 4, NULL) < 4)
		exit(1);
	CHECKED(engines);
	for (int i = 0; i < 4; i++)
		printf("engine %s: %s, %d\n", engines.of[i].name, engines.of[i].summary, engines.of[i].available);
	if (ktrxer_device_list(devices.of, 1, &err) < 1 || ktrxer_device_qdiscs(qdiscs.of, devices.of) < 0)
		failed("devices", 0, &err);
	CHECKED(devices);
	CHECKED(qdiscs);
	printf("device %s %u qdisc %s\n", devices.of->name, devices.of->index, qdiscs.of->root);
	options.kind = KTRXER_SCHEDULE_PERIODIC;
	options.start_ns = 77;
	options.gap_num = 5;
	if (ktrxer_schedule_new(&schedule, &options, &err) < 0)
		failed("ktrxer_schedule_new", 0, &err);
	for (int i = 0; i < 2 && ktrxer_schedule_next(schedule, due.of) == 0; i++)
		printf("deadline %llu %llu\n", (unsigned long long)due.of->index, (unsigned long long)due.of->at_ns);
	CHECKED(due);
	ktrxer_schedule_free(schedule);
}

int main(void)
{
	struct ktrxer_path_options where = KTRXER_PATH_OPTIONS_INIT;
	struct ktx_options sending = KTX_OPTIONS_INIT;
	struct krx_options receiving = KRX_OPTIONS_INIT;
	struct ktrxer_error err = { 0 };
	struct krx_rule rules[2];
	struct krx *rx = NULL;
	struct ktx *tx = NULL;
	GUARDED(struct ktrxer_path, path, 1);
	int rc;

	where.to = (struct ktrxer_addr){ .family = 2, .bytes = { 127, 0, 0, 1 } };
	where.no_link_address = true;
	rc = ktrxer_path_resolve(path.of, &where, &err);
	CHECKED(path);
	if (rc < 0)
		failed("ktrxer_path_resolve", rc, &err);
	receiving.device = "lo";
	receiving.backend = "packet";
	sending.engine = "udp";
	sending.flags = KTX_NO_REALTIME;
	if ((rc = krx_rule_parse(&rules[0], "capture tcp from any to any", &err)) < 0 ||
	    (rc = krx_rule_parse(&rules[1], "capture udp from any to 127.0.0.1:9", &err)) < 0 ||
	    (rc = krx_open(&rx, &receiving, rules, 2, &err)) < 0 || (rc = ktx_open(&tx, &sending, &err)) < 0)
		failed("open", rc, &err);
	send_all(tx, path.of);
	results_print(tx);
	packets_print(rx);
	others_print();
	ktx_close(tx);
	krx_close(rx);
	return 0;
}
