/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* `ktrxer doctor`: what works here, what does not, and what would help. Tries things; sends nothing. */
#include "cli.h"

#include "fields_doctor.h"
#include "error.h"
#include "shared_options.h"

#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

struct doctor_options {
	const char *device;
};

#define FIELD(name) offsetof(struct doctor_options, name)
#define ENGINES_MOST 16
#define DEVICES_MAX 64

static const struct opt doctor_opts[] = {
	OPTION_DEVICE(FIELD(device), .help = "Try the engines on this device; by default the first one that is up "
					     "and not the loopback"),
	{ 0 },
};

static const struct {
	uint32_t bit;
	const char *name;
	/* clang-format off */
} feature_names[] = {
	{ KTX_CAN_WHOLE_FRAME, "whole-frame" }, { KTX_CAN_IPV4, "ipv4" }, { KTX_CAN_IPV6, "ipv6" },
	{ KTX_CAN_TRAIN, "train" },
	{ KTX_CAN_SCHED_STAMP, "sched-stamp" },
	{ KTX_CAN_DRIVER_STAMP, "driver-stamp" }, { KTX_CAN_NIC_STAMP, "nic-stamp" }, { KTX_CAN_KERNEL_WAIT,
		"kernel-wait" },
	{ KTX_CAN_MAPPED, "mapped" }, { KTX_CAN_UNPRIVILEGED, "unprivileged" }, { KTX_CAN_REPLY_FD, "reply-socket" },
	{ KTX_CAN_BYPASS, "qdisc-bypass" }, { KTX_CAN_ZERO_COPY, "zero-copy" },
	{ KTX_CAN_TEMPLATE, "template" }, { KTX_CAN_POLL, "poll" }, { KTX_CAN_HOST_STACK, "host-stack" },
	{ KTX_CAN_SEND_TIME, "send-time" },
};
/* clang-format on */

static bool choose_device(struct ktrxer_device *chosen, const char *wanted, struct ktrxer_error *err)
{
	struct ktrxer_device devices[DEVICES_MAX];
	int n;

	if (wanted)
		return ktrxer_device_get(chosen, wanted, err) == 0;
	n = ktrxer_device_list(devices, DEVICES_MAX, err);
	for (int pass = 0; pass < 2; pass++)
		for (int i = 0; i < n && i < DEVICES_MAX; i++)
			if (devices[i].link && devices[i].up &&
			    (pass == 1 || (!devices[i].loopback && devices[i].running))) {
				*chosen = devices[i];
				return true;
			}
	ktrxer_fail(err, -ENODEV, "no device is up: `ip link set DEV up`");
	return false;
}

static void say_device(struct cli *cli, struct json *json, const struct ktrxer_device *d)
{
	out_text(cli, "device %s: %s%s, MTU %u, qdisc %s, driver %s", d->name,
		 d->kind[0]    ? d->kind
		 : d->loopback ? "loopback"
			       : "physical",
		 d->running ? "" : " (no carrier)", d->mtu, d->qdisc[0] ? d->qdisc : "unknown",
		 d->driver[0] ? d->driver : "unknown");
	doctor_end_device_open(json);
	doctor_device_name(json, d->name);
	doctor_device_mtu(json, d->mtu);
	doctor_device_kind(json, d->kind);
	doctor_device_driver(json, d->driver);
	doctor_device_qdisc(json, d->qdisc);
	doctor_device_tx_queues(json, d->tx_queues);
	doctor_device_running(json, d->running);
	json_object_end(json);
}

static void feature_list(uint32_t features, char *text, size_t size)
{
	text[0] = '\0';
	for (size_t i = 0; i < sizeof feature_names / sizeof *feature_names; i++)
		if (features & feature_names[i].bit) {
			if (text[0])
				strncat(text, " ", size - strlen(text) - 1);
			strncat(text, feature_names[i].name, size - strlen(text) - 1);
		}
}

static void say_engines(struct cli *cli, struct json *json, const char *device)
{
	struct ktx_engine_info engines[ENGINES_MOST];
	int n = ktx_engines(engines, ENGINES_MOST, device);

	doctor_end_engines_open(json);
	for (int i = 0; i < n && i < ENGINES_MOST; i++) {
		const struct ktx_engine_info *e = &engines[i];
		char features[256];

		feature_list(e->features, features, sizeof features);
		out_text(cli, "engine %-7s %s %s", e->name,
			 e->available ? "works:  " : "missing:", e->available ? e->summary : e->reason);
		if (e->available)
			out_text(cli, "               can: %s", features);
		json_object(json, NULL);
		doctor_engine_name(json, e->name);
		doctor_engine_available(json, e->available);
		doctor_engine_reason(json, e->available ? e->summary : e->reason);
		doctor_engine_features_open(json);
		for (size_t f = 0; f < sizeof feature_names / sizeof *feature_names; f++)
			if (e->features & feature_names[f].bit)
				json_string(json, NULL, feature_names[f].name);
		json_array_end(json);
		json_object_end(json);
	}
	json_array_end(json);
}

static bool opens(int type)
{
	int fd = socket(AF_INET, type | SOCK_CLOEXEC, IPPROTO_ICMP);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* The engine udp takes a raw socket where ping sockets are closed. */
static void say_icmp_echo(struct cli *cli, struct json *json)
{
	const bool ping = opens(SOCK_DGRAM), works = ping || opens(SOCK_RAW);

	out_text(cli, "ICMP echo      %s %s", works ? "works:  " : "missing:",
		 ping    ? "by ping sockets, no privilege needed"
		 : works ? "by raw sockets, because ping sockets are closed to this group; they need CAP_NET_RAW"
			 : KTRXER_PING_CLOSED);
	doctor_end_icmp_echo_open(json);
	doctor_module_available(json, works);
	doctor_module_reason(json, works ? NULL : KTRXER_PING_CLOSED);
	json_object_end(json);
}

/* Only the module's receiver can be tried without a change of the device. */
static void say_receive_module(struct cli *cli, struct json *json)
{
	struct ktrxer_error err = { 0 };
	const bool works = krx_module_check(&err) == 0;

	out_text(cli, "receive module %s %s",
		 works ? "works:  " : "missing:", works ? "rules at the ingress of any device" : err.text);
	doctor_end_receive_module_open(json);
	doctor_module_available(json, works);
	doctor_module_reason(json, works ? NULL : err.text);
	json_object_end(json);
}

static void say_preceding(struct cli *cli, struct json *json, const char *device)
{
	struct ktrxer_error err = { 0 };
	char text[160];
	const bool known = krx_preceding(text, sizeof text, device, &err) == 0;

	if (known)
		out_text(cli, "receive rules on %s come after: %s", device, text[0] ? text : "nothing");
	doctor_end_receive_preceded_by(json, known && text[0] ? text : NULL);
}

static uint64_t read_cost(clockid_t clock)
{
	struct timespec t;
	uint64_t start = ktrxer_now_ns();

	for (int i = 0; i < 1000; i++)
		clock_gettime(clock, &t);
	return (ktrxer_now_ns() - start) / 1000;
}

static void read_line(const char *path, char *text, size_t size)
{
	FILE *f = fopen(path, "re");

	text[0] = '\0';
	if (!f)
		return;
	if (fgets(text, (int)size, f))
		text[strcspn(text, "\n")] = '\0';
	fclose(f);
}

static void say_clocks(struct cli *cli, struct json *json)
{
	struct ktrxer_clock_pair pair;
	struct timex tx = { 0 };
	char source[64];
	uint64_t cost = read_cost(CLOCK_MONOTONIC);
	int state = adjtimex(&tx);

	ktrxer_clock_pair_read(&pair);
	read_line("/sys/devices/system/clocksource/clocksource0/current_clocksource", source, sizeof source);
	out_text(cli,
		 "clock: source %s, %" PRIu64
		 " ns to read, CLOCK_REALTIME to CLOCK_MONOTONIC within %u ns, %s, TAI offset %ld s%s",
		 source[0] ? source : "unknown", cost, pair.bound_ns,
		 state >= 0 && !(tx.status & STA_UNSYNC) ? "synchronised" : "not synchronised (no NTP or PTP)",
		 (long)tx.tai, tx.tai ? "" : " (not set)");
	if (cost > 200)
		out_text(cli, "       slow to read: the clock source is not the processor's own; times and spins are "
			      "coarser");
	doctor_end_clocks_open(json);
	doctor_clocks_source(json, source);
	doctor_clocks_read_ns(json, cost);
	doctor_clocks_pair_bound_ns(json, pair.bound_ns);
	doctor_clocks_synchronised(json, state >= 0 && !(tx.status & STA_UNSYNC));
	doctor_clocks_tai_offset_s(json, tx.tai);
	json_object_end(json);
}

#define CAP_NET_ADMIN_BIT 12
#define CAP_NET_RAW_BIT 13
#define CAP_IPC_LOCK_BIT 14
#define CAP_SYS_NICE_BIT 23
#define CAP_BPF_BIT 39

static uint64_t effective_capabilities(void)
{
	FILE *f = fopen("/proc/self/status", "re");
	uint64_t caps = 0;
	char line[128];

	if (!f)
		return 0;
	while (fgets(line, sizeof line, f))
		if (strncmp(line, "CapEff:", 7) == 0)
			caps = strtoull(line + 7, NULL, 16);
	fclose(f);
	return caps;
}

static void say_privileges(struct cli *cli, struct json *json)
{
	static const struct {
		int bit;
		const char *name, *lost;
	} caps[] = {
		{ CAP_NET_RAW_BIT, "CAP_NET_RAW", "engines packet and raw, and capture" },
		{ CAP_NET_ADMIN_BIT, "CAP_NET_ADMIN", "rules that drop, NIC stamps" },
		{ CAP_SYS_NICE_BIT, "CAP_SYS_NICE", "real-time priority: probes are later on a busy machine" },
		{ CAP_IPC_LOCK_BIT, "CAP_IPC_LOCK", "locked memory beyond the limit" },
		{ CAP_BPF_BIT, "CAP_BPF", "XDP" },
	};
	uint64_t have = effective_capabilities();
	struct rlimit lock = { 0 }, realtime = { 0 };

	getrlimit(RLIMIT_MEMLOCK, &lock);
	getrlimit(RLIMIT_RTPRIO, &realtime);
	doctor_end_privileges_open(json);
	doctor_privileges_uid(json, geteuid());
	for (size_t i = 0; i < sizeof caps / sizeof *caps; i++) {
		bool has = have >> caps[i].bit & 1;

		json_bool(json, caps[i].name, has);
		if (!has)
			out_text(cli, "privilege %s is missing; without it: %s", caps[i].name, caps[i].lost);
	}
	doctor_privileges_rtprio_limit(json, realtime.rlim_cur);
	doctor_privileges_memlock_limit_bytes_or_null(json, lock.rlim_cur != RLIM_INFINITY, lock.rlim_cur);
	json_object_end(json);
}

static int run_doctor(struct cli *cli, const void *options)
{
	const struct doctor_options *o = options;
	struct json *json = out_end(cli);
	struct ktrxer_device device;
	struct ktrxer_error err = { 0 };
	bool found = choose_device(&device, o->device, &err);

	if (o->device && !found) {
		cli_complain(cli, "%s", err.text);
		doctor_end_device_null(json);
	} else if (found) {
		say_device(cli, json, &device);
	} else {
		out_text(cli, "%s", err.text);
		doctor_end_device_null(json);
	}
	say_engines(cli, json, found ? device.name : o->device);
	say_icmp_echo(cli, json);
	say_receive_module(cli, json);
	if (found)
		say_preceding(cli, json, device.name);
	say_clocks(cli, json);
	say_privileges(cli, json);
	return out_finish(cli, json) | (o->device && !found ? EXIT_NO_RESULT : EXIT_VALID);
}

const struct command cmd_doctor = {
	.name = "doctor",
	.summary = "What works on this machine, what does not, and what would help",
	.description = OPT_PROSE("Tries each engine on a device, the clocks and the privileges, and says in one line "
				 "what is missing and how to get it. "
				 "It sends nothing and changes nothing."),
	.examples = OPT_PROSE("ktrxer doctor\tThe first device that is up.\n"
			      "ktrxer doctor --device eth0 --json\tFor a program.\n"),
	.options = doctor_opts,
	.options_size = sizeof(struct doctor_options),
	.run = run_doctor,
	.reports = true,
};
