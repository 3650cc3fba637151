/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Twenty probes, 10 ms apart, and how each ended.
 *
 *     on_time ADDRESS
 */
#include <ktrxer.h>

#include <poll.h>
#include <stdio.h>

#define COUNT 20

static void print_reports(struct ktx *tx)
{
	struct ktx_report reports[8];

	for (int n; (n = ktx_reports(tx, reports, 8)) > 0;)
		for (int i = 0; i < n; i++)
			printf("probe %d: %s, %+.3f us late, time stamp of %s\n", (int)reports[i].id,
			       reports[i].status == KTX_SENT ? "sent" : "not sent",
			       (double)(int64_t)(reports[i].sent_ns - reports[i].at_ns) / 1000,
			       reports[i].departure_source == KTX_DEPARTURE_QUEUED ? "the kernel"
										   : "the device's driver");
}

int main(int argc, char **argv)
{
	struct ktrxer_path_options where = KTRXER_PATH_OPTIONS_INIT;
	struct ktx_options options = KTX_OPTIONS_INIT;
	struct ktrxer_frame_spec spec = KTRXER_FRAME_SPEC_INIT;
	struct ktrxer_path path;
	struct ktrxer_error err = { 0 };
	struct ktx_accounts accounts;
	struct ktx *tx = NULL;
	struct ktx_slot slot;
	uint64_t start;

	if (argc != 2 || ktrxer_addr_parse(&where.to, argv[1]) < 0) {
		fprintf(stderr, "usage: on_time ADDRESS\n");
		return 2;
	}
	if (ktrxer_path_resolve(&path, &where, &err) < 0)
		goto fail;
	options.device = path.device.name;
	if (ktx_open(&tx, &options, &err) < 0)
		goto fail;
	spec.path = &path;
	spec.proto = KTRXER_UDP;
	spec.from_port = 40000;
	spec.to_port = 9;
	spec.payload_length = 28;
	start = ktrxer_now_ns() + 20 * KTRXER_NS_PER_MS;
	for (uint64_t i = 0; i < COUNT; i++) {
		struct ktx_probe probe = { .id = i, .at_ns = start + i * 10 * KTRXER_NS_PER_MS };

		ktx_reserve(tx, &slot); /* 20 of 1024 slots: there is room */
		probe.length = (uint32_t)ktrxer_frame_build(slot.frame, slot.capacity, &spec);
		if (ktx_commit(tx, &probe, &err) < 0)
			goto fail;
	}
	do {
		struct pollfd ready = { .fd = ktx_fd(tx), .events = POLLIN };

		poll(&ready, 1, 1000);
		print_reports(tx);
		ktx_accounts(tx, &accounts);
	} while (accounts.pending);
	printf("%d sent, %d failed\n", (int)accounts.sent, (int)accounts.failed);
	ktx_close(tx);
	return accounts.sent == COUNT ? 0 : 1;

fail:
	fprintf(stderr, "on_time: %s\n", err.text);
	ktx_close(tx);
	return 1;
}
