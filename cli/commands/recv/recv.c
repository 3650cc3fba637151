/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ktrxer recv: packets that rules ask for, with the kernel's stamps, as text, as samples, or into a pcapng file. */
#include "base_limits.h"
#include "cli.h"

#include "fields_packets.h"
#include "loop.h"
#include "packet_text.h"
#include "pcapng.h"
#include "reasons.h"
#include "shared_options.h"
#include "ssh_sessions.h"

#include <errno.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

struct recv_options {
	const char *device, *write;
	int backend; /* index into backends[] */
	struct opt_list rules;
	uint64_t count, duration_ns, snap, ring;
	bool promiscuous, outgoing, force, nic_stamps;
};

#define FIELD(name) offsetof(struct recv_options, name)

static const char *const backends[] = { "auto", "packet", "xdp", "module", "nftables", "module-prerouting", NULL };

static const struct opt recv_table[] = {
	OPTION_DEVICE(FIELD(device), .help = "Listen on this device; without it, on all of them",
		      .heading = "What to receive"),
	{ "rule", 0, OPT_LIST, FIELD(rules), "RULE",
	  .help = "OP PROTO from ADDR[:PORT] to ADDR[:PORT] [prio N]; the smallest prio decides, "
		  "then the first; without any rule everything is captured" },
	{ "promiscuous", 0, OPT_FLAG, FIELD(promiscuous), .fallback = "yes",
	  .help = "Also packets for other hosts, as far as they reach the device" },
	{ "outgoing", 0, OPT_FLAG, FIELD(outgoing), .help = "Also packets that this host sends" },
	{ "backend", 0, OPT_CHOICE, FIELD(backend), "NAME", "auto",
	  "Back end; auto takes the first one that can carry out the rules", .choices = backends },
	{ "nic-stamps", 0, OPT_FLAG, FIELD(nic_stamps),
	  .help = "Switch the NIC's stamps of arrivals on, and back at the end; some NICs lose their carrier "
		  "then. Stamps that are on are used in any case" },
	{ "force", 0, OPT_FLAG, FIELD(force),
	  .help = "Accept rules that drop everything, or the packets of this SSH session" },
	OPTION_COUNT(FIELD(count), .fallback = "0", .help = "End after so many packets; 0 is no end",
		     .heading = "How long"),
	OPTION_FOR(FIELD(duration_ns), .fallback = "0", .help = "End after this time; 0 is no end"),
	{ "write", 'w', OPT_STRING, FIELD(write), "FILE",
	  .help = "Write the packets to a pcapng file, with the raw stamps in nanoseconds, "
		  "and do not print them",
	  .heading = "Output and memory" },
	{ "snap", 0, OPT_SIZE, FIELD(snap), "BYTES", "0", "Keep so many bytes of each packet; 0 keeps all",
	  .max = KRX_SNAP_MAX },
	OPTION_RING(FIELD(ring), .help = "Buffer for packets; packets without room are counted as lost", .min = 1,
		    .max = KRX_RING_MAX),
	{ NULL },
};

enum { INTERFACES_MAX = 256 };

/* So long, and so often, a device that went down is looked for: its removal is reported a moment later. */
#define GONE_WAIT_NS (500 * (uint64_t)KTRXER_NS_PER_MS)
#define GONE_LOOK_NS (10 * (uint64_t)KTRXER_NS_PER_MS)
#define DRAIN_MAX_NS ((uint64_t)KTRXER_NS_PER_S)

struct capture_file {
	struct ktrxer_pcapng *file;
	uint32_t snap;
	int interfaces;
	struct {
		uint32_t device;
		enum ktrxer_link link;
		bool nic; /* stamps of the NIC's own clock: not in one column with the others */
		uint64_t packets;
	} interface[INTERFACES_MAX];
	bool unflushed;
};

struct receiver {
	struct cli *cli;
	const struct recv_options *options;
	struct krx_rule *rules;
	int rule_count;
	struct krx *rx;
	struct capture_file to;
	uint64_t captured, by_source[PACKET_SOURCES];
	uint64_t start_ns, end_ns;
	uint64_t stopped_ns; /* when to stop was found; 0: not yet */
	uint64_t down_ns;    /* when the device went down; 0: it is up */
	int error;           /* why nothing is received any more */
	bool finished;
	struct ktrxer_clock_pair start;
	struct loop *loop;
	struct loop_source packets;
	struct loop_timer timer; /* of the end, and of the next look at a device that went down */
};

static int rules_parse(struct receiver *r)
{
	static const char *const everything[] = { "capture any from any to any" };
	const char *const *texts = r->options->rules.count ? r->options->rules.items : everything;
	struct ktrxer_error err;

	r->rule_count = r->options->rules.count ? r->options->rules.count : 1;
	r->rules = calloc((size_t)r->rule_count, sizeof *r->rules);
	if (!r->rules) {
		cli_complain(r->cli, "no memory for %d rules", r->rule_count);
		return EXIT_NO_RESULT;
	}
	for (int i = 0; i < r->rule_count; i++) {
		if (krx_rule_parse(&r->rules[i], texts[i], &err)) {
			cli_complain(r->cli, "--rule %d: %s", i + 1, err.text);
			return EXIT_USAGE;
		}
	}
	return 0;
}

static int file_interface(struct capture_file *to, uint32_t device, enum ktrxer_link link, bool nic)
{
	char name[IF_NAMESIZE];
	int i, ret;

	for (i = 0; i < to->interfaces; i++)
		if (to->interface[i].device == device && to->interface[i].link == link && to->interface[i].nic == nic)
			return i;
	if (i == INTERFACES_MAX)
		return -ENOSPC;
	ret = ktrxer_pcapng_interface(to->file, if_indextoname(device, name) ? name : NULL,
				      nic ? "stamps of the NIC's own clock" : NULL, link, to->snap);
	if (ret < 0)
		return ret;
	to->interface[i].device = device;
	to->interface[i].link = link;
	to->interface[i].nic = nic;
	to->interfaces++;
	return i;
}

/* After krx_open(), so that a file is made only when the receiver works. */
static int file_open(struct receiver *r)
{
	struct ktrxer_device device;
	char version[64];
	struct ktrxer_error err;

	snprintf(version, sizeof version, "ktrxer %s", ktrxer_version());
	r->to.snap = (uint32_t)r->options->snap;
	if (ktrxer_pcapng_create(&r->to.file, r->options->write, version, NULL, &err)) {
		r->to.file = NULL;
		cli_fail(r->cli, &err);
		return EXIT_NO_RESULT;
	}
	/* A file without packets says of which device it has none. */
	if (r->options->device && !ktrxer_device_get(&device, r->options->device, NULL))
		file_interface(&r->to, device.index, device.link, false);
	return 0;
}

static int file_packet(struct capture_file *to, const struct krx_packet *packet)
{
	int interface =
		file_interface(to, packet->device, (enum ktrxer_link)packet->link, packet->clock == KTRXER_CLOCK_PHC);

	if (interface < 0)
		return interface;
	to->interface[interface].packets++;
	to->unflushed = true;
	return ktrxer_pcapng_packet(to->file, interface, packet, NULL);
}

/*
 * The loss is one number for the whole socket: it stands with the first interface of the only device, and nowhere when
 * there are more.
 */
static void file_close(struct receiver *r, uint64_t lost)
{
	struct ktrxer_pcapng_stats stats = { .start_ns = r->start.real_ns };
	struct ktrxer_clock_pair now;
	struct ktrxer_error err;
	bool one = true;

	if (!r->to.file)
		return;
	for (int i = 1; i < r->to.interfaces; i++)
		one &= r->to.interface[i].device == r->to.interface[0].device;
	ktrxer_clock_pair_read(&now);
	stats.end_ns = now.real_ns;
	for (int i = 0; i < r->to.interfaces; i++) {
		stats.delivered = r->to.interface[i].packets;
		stats.lost = one && !i ? lost : 0;
		ktrxer_pcapng_statistics(r->to.file, i, &stats);
	}
	if (ktrxer_pcapng_close(r->to.file, &err)) {
		cli_fail(r->cli, &err);
		reason_failure(r->cli, VERDICT_INVALID, err.code, err.text);
	}
	r->to.file = NULL;
}

static int packet_take(struct receiver *r, const struct krx_packet *packet)
{
	struct json *sample = out_sample(r->cli, "packet");
	char text[PACKET_TEXT];

	r->captured++;
	if (packet->source < PACKET_SOURCES)
		r->by_source[packet->source]++;
	if (sample) {
		packet_json(packet, sample);
		out_put(r->cli, sample);
	}
	if (r->to.file)
		return file_packet(&r->to, packet);
	if (!r->cli->common.json && !r->cli->common.jsonl && !r->cli->common.quiet)
		out_text(r->cli, "%s", packet_text(packet, text));
	return 0;
}

static void trouble_say(struct receiver *r)
{
	const char *device = r->options->device ? r->options->device : "all devices";
	const uint64_t after_ms = (ktrxer_now_ns() - r->start_ns) / 1000000;
	char word[80];

	if (r->error == -ENODEV)
		snprintf(word, sizeof word, "was removed");
	else if (r->error == -ENETDOWN)
		snprintf(word, sizeof word, "went down");
	else
		snprintf(word, sizeof word, "failed (%s)", strerror(-r->error));
	cli_complain(r->cli, "device '%s' %s after %llu ms; what came until then is counted", device, word,
		     (unsigned long long)after_ms);
	reason_device_gone(r->cli, device, word, after_ms);
}

/* A device that is down may have been removed. Returns the time of the next look; 0: there is none. */
static uint64_t look_for_device(struct receiver *r)
{
	const uint64_t now = ktrxer_now_ns();
	struct krx_packet packet;
	int ret;

	if (!r->down_ns) {
		r->down_ns = now;
		loop_unwatch(r->loop, &r->packets); /* which is readable from now on */
		return now + GONE_LOOK_NS;
	}
	ret = krx_next(r->rx, &packet);
	if (ret < 0)
		r->error = ret;
	/* The name goes first; sockets get their error when all that used the device (an XDP program) is removed. */
	if (r->options->device && !if_nametoindex(r->options->device))
		r->error = -ENODEV;
	return r->error == -ENETDOWN && now < r->down_ns + GONE_WAIT_NS ? now + GONE_LOOK_NS : 0;
}

static uint64_t nothing_waits(struct receiver *r)
{
	if (r->to.unflushed) { /* a program that follows the file can read these packets */
		ktrxer_pcapng_flush(r->to.file);
		r->to.unflushed = false;
	}
	return r->end_ns;
}

/*
 * Takes what has arrived. When the end has come, what had arrived by then still waits in the ring and is taken. Packets
 * that arrive later are not waited for, but one that is read is counted: captured is what the rules' counts say.
 * Returns when to call it again at the latest; 0: it has finished.
 */
static uint64_t receive(struct receiver *r)
{
	while (!r->error && (!r->options->count || r->captured < r->options->count)) {
		const uint64_t now = ktrxer_now_ns();
		struct krx_packet packet;
		int ret;

		if (!r->stopped_ns && (cli_stopped(r->cli) || now >= r->end_ns))
			r->stopped_ns = now < r->end_ns ? now : r->end_ns;
		if (r->stopped_ns && now > r->stopped_ns + DRAIN_MAX_NS)
			return 0;
		ret = krx_next(r->rx, &packet);
		if (ret == 0)
			return r->stopped_ns ? 0 : nothing_waits(r);
		if (ret < 0) {
			r->error = ret;
			break;
		}
		if (packet_take(r, &packet) < 0) /* file_close() says why */
			return 0;
		if (r->stopped_ns && packet.mono_ns >= r->stopped_ns)
			return 0;
	}
	return r->error == -ENETDOWN ? look_for_device(r) : 0;
}

static void receive_due(struct loop_timer *timer, uint64_t now_ns)
{
	struct receiver *r = (struct receiver *)((char *)timer - offsetof(struct receiver, timer));

	(void)now_ns;
	timer->at_ns = receive(r);
	r->finished = !timer->at_ns;
	if (r->finished)
		loop_stop(r->loop);
}

static void packets_ready(struct loop_source *source, uint32_t events)
{
	(void)events;
	((struct receiver *)((char *)source - offsetof(struct receiver, packets)))->timer.at_ns = 0;
}

static int receive_all(struct receiver *r)
{
	int rc = loop_new(&r->loop);

	r->timer.due = receive_due;
	r->packets = (struct loop_source){ .fd = krx_fd(r->rx), .ready = packets_ready };
	if (rc == 0)
		rc = loop_watch(r->loop, &r->packets, EPOLLIN);
	if (rc == 0) {
		loop_timer_add(r->loop, &r->timer);
		rc = loop_run(r->loop, r->cli->stop_fd);
	}
	if (rc < 0)
		cli_complain(r->cli, "the event loop: %s", strerror(-rc));
	else if (!r->finished && !r->error)
		receive(r); /* stopped by the user */
	if (r->error)
		trouble_say(r);
	loop_free(r->loop);
	return rc;
}

static void backend_json(const struct krx_stats *stats, struct json *json)
{
	recv_backend_backend(json, stats->backend);
	recv_backend_backend_mode(json, stats->mode[0] ? stats->mode : NULL);
	recv_backend_backend_why(json, stats->why);
	recv_backend_backend_note(json, stats->note[0] ? stats->note : NULL);
	recv_backend_preceded_by(json, stats->preceded_by[0] ? stats->preceded_by : NULL);
}

static int report(struct receiver *r)
{
	struct krx_rule_stats *counts = calloc((size_t)r->rule_count, sizeof *counts);
	struct krx_stats stats = { 0 };
	uint64_t matched = 0, duration = ktrxer_now_ns() - r->start_ns;
	struct json *end;
	char text[KRX_RULE_TEXT];

	if (!counts || krx_stats(r->rx, &stats, counts, r->rule_count))
		reason_recv_loss_unknown(r->cli);
	file_close(r, stats.lost);
	for (int i = 0; counts && i < r->rule_count; i++)
		matched += counts[i].matched;
	if (stats.lost)
		reason_recv_lost(r->cli, stats.lost);
	r->cli->no_figure = !matched;
	if (!matched)
		reason_recv_nothing(r->cli);

	for (int i = 0; counts && i < r->rule_count; i++)
		out_text(r->cli, "rule %d: %llu matched, %llu captured, %llu dropped (%s)", i + 1,
			 (unsigned long long)counts[i].matched, (unsigned long long)counts[i].captured,
			 (unsigned long long)counts[i].dropped, krx_rule_format(&r->rules[i], text));
	out_text(r->cli, "%llu packets captured, %llu lost, in %llu.%03llu s", (unsigned long long)r->captured,
		 (unsigned long long)stats.lost, (unsigned long long)(duration / 1000000000),
		 (unsigned long long)(duration / 1000000 % 1000));

	end = out_end(r->cli);
	recv_end_device(end, r->options->device);
	backend_json(&stats, end);
	recv_end_before_taps(end, stats.before_taps);
	recv_end_after_gro(end, stats.after_gro);
	recv_end_start_ns(end, r->start_ns);
	recv_end_duration_ns(end, duration);
	recv_end_captured(end, r->captured);
	recv_end_lost(end, stats.lost);
	recv_end_clock_steps(end, stats.clock_steps);
	recv_end_stamps_open(end);
	for (int i = 1; i < PACKET_SOURCES; i++)
		json_u64(end, packet_sources[i], r->by_source[i]);
	json_object_end(end);
	recv_end_file(end, r->options->write);
	recv_end_rules_open(end);
	for (int i = 0; counts && i < r->rule_count; i++) {
		json_object(end, NULL);
		recv_rule_rule(end, krx_rule_format(&r->rules[i], text));
		recv_rule_matched(end, counts[i].matched);
		recv_rule_captured(end, counts[i].captured);
		recv_rule_dropped(end, counts[i].dropped);
		json_object_end(end);
	}
	json_array_end(end);
	free(counts);
	return out_finish(r->cli, end);
}

static void listening_say(struct receiver *r)
{
	struct krx_stats stats = { 0 };
	struct json *event;

	krx_stats(r->rx, &stats, NULL, 0);
	event = out_event(r->cli, "listening");
	if (event) {
		recv_listening_device(event, r->options->device);
		backend_json(&stats, event);
		out_put(r->cli, event);
	}
	out_text(r->cli, "listening on %s by %s%s%s, %d rule%s (%s)",
		 r->options->device ? r->options->device : "all devices", stats.backend, stats.mode[0] ? ", " : "",
		 stats.mode, r->rule_count, r->rule_count == 1 ? "" : "s", stats.why);
	if (stats.note[0])
		out_text(r->cli, "note: %s", stats.note);
}

static int run_recv(struct cli *cli, const void *arguments)
{
	const struct recv_options *options = arguments;
	struct receiver r = { .cli = cli, .options = options };
	struct krx_session sessions[SSH_SESSIONS_MAX];
	struct krx_options rx = KRX_OPTIONS_INIT;
	struct ktrxer_error err;
	int status = rules_parse(&r), ret;

	if (status)
		goto out;
	status = EXIT_NO_RESULT;
	ret = cli_wait_start(cli, &r.start_ns);
	if (ret < 0)
		goto out;
	rx.device = options->device;
	rx.backend = backends[options->backend];
	rx.snap_length = (uint32_t)options->snap;
	rx.ring_bytes = (uint32_t)options->ring;
	rx.promiscuous = options->promiscuous;
	rx.see_outgoing = options->outgoing;
	rx.force = options->force;
	rx.nic_stamps = options->nic_stamps;
	rx.sessions = sessions;
	rx.session_count = (uint32_t)ssh_sessions_find(sessions);
	if (krx_open(&r.rx, &rx, r.rules, r.rule_count, &err)) {
		cli_fail(cli, &err);
		goto out;
	}
	if (options->write && file_open(&r))
		goto out;
	ktrxer_clock_pair_read(&r.start);
	if (r.start_ns < r.start.mono_ns)
		r.start_ns = r.start.mono_ns;
	listening_say(&r);
	r.end_ns = options->duration_ns ? r.start_ns + options->duration_ns : KTRXER_NEVER;
	if (receive_all(&r) == 0)
		status = report(&r);
out:
	if (r.to.file)
		ktrxer_pcapng_close(r.to.file, NULL);
	krx_close(r.rx);
	free(r.rules);
	return status;
}

const struct command cmd_recv = {
	.name = "recv",
	.summary = "Capture and drop packets by rules, with the kernel's stamps",
	.description = OPT_PROSE(
		"Packets are judged by rules in the order of their prio, then of the command line; the first that fits "
		"decides. Its operation is one of capture (a copy comes here, the packet goes on), drop, capture+drop, "
		"and forward (it goes on unseen, and is only counted). A packet that no rule fits goes on.\n\n"
		"PROTO is udp, tcp, icmp, icmp6, sctp, any, or a number. ADDR is an address, a prefix or any; IPv6 "
		"stands in brackets when a port follows: [2001:db8::/32]:53. Fragments after the first have no ports "
		"and fit only rules without ports. A rule with wildcards alone also fits packets that are not IP.\n\n"
		"The back end packet is a tap (AF_PACKET). It sees packets after the device's merging (GRO), and "
		"cannot drop. Stamps are those of the kernel that libpcap shows, too; or the NIC's, where they are on. "
		"Forwarded packets reach this "
		"process cut to their headers, to be counted.\n\n"
		"The back end xdp (Linux 5.9) has the rules in front of the stack and of tcpdump, in the device's "
		"driver where "
		"that can be. Stamps are taken there, on CLOCK_MONOTONIC, or by the NIC where its driver passes its "
		"stamps on. Packets that are captured and dropped come by AF_XDP. The back end module is the kernel "
		"module, where it is loaded. The back end nftables (Linux 5.12) is a tap, and a table of its own "
		"that drops behind it. All rules end with this process. auto takes packet where no "
		"rule drops, else xdp, else module, else nftables.\n\n"
		"A rule that drops everything, or the packets of the SSH connection that this command was typed over, "
		"is "
		"refused without --force.\n\n"
		"The text is for people and may change; programs read --jsonl. With --write nothing is printed for "
		"each packet."),
	.examples = OPT_PROSE(
		"ktrxer recv --device eth0 --rule 'capture udp from any to any:53' --count 10\t"
		"Ten queries to a name server.\n"
		"ktrxer recv --device eth0 --write all.pcapng --for 10s\tEverything of ten seconds, for Wireshark.\n"
		"ktrxer recv --device eth0 --rule 'capture icmp from 192.0.2.0/24 to any' --jsonl\t"
		"One object a packet.\n"
		"ktrxer recv --device eth0 --rule 'capture+drop tcp from 192.0.2.1:80 to any:50000'\t"
		"Answers to a connection made by hand: the host does not see them, and does not reset it."),
	.options = recv_table,
	.options_size = sizeof(struct recv_options),
	.run = run_recv,
	.measures = true,
};
