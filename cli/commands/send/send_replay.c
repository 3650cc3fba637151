/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "send_replay.h"

#include "error.h"
#include "send.h"
#include "wide.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * Packets that a capture has recorded in another order than that of their times are less than this apart, in most
 * files; a clock that is set back goes farther.
 */
#define REORDERED_NS ((uint64_t)KTRXER_NS_PER_S)

uint64_t send_replay_advance(struct replay *replay, bool has_time, int64_t time_ns)
{
	uint64_t gap = 0;

	if (!has_time)
		return replay->offset_ns;
	if (replay->have_first && time_ns < replay->last_file_ns) {
		/* Unsigned: times may lie on both sides of 1970 and farther apart than a signed number holds. */
		const uint64_t behind = (uint64_t)replay->last_file_ns - (uint64_t)time_ns;
		const uint64_t since = time_ns > replay->back_ns ? (uint64_t)time_ns - (uint64_t)replay->back_ns : 0;

		/* It leaves at once, and the time that has passed does not pass again. */
		if (!replay->far_back || behind <= since) {
			replay->far_back = behind > REORDERED_NS;
			replay->back_ns = time_ns;
			return replay->offset_ns;
		}
		/* The second one far back: the clock was set back, and time is counted from there. */
		replay->last_file_ns = replay->back_ns;
	}
	replay->far_back = false;
	if (replay->have_first && time_ns > replay->last_file_ns) {
		gap = (uint64_t)time_ns - (uint64_t)replay->last_file_ns;
		if (replay->max_gap_ns && gap > replay->max_gap_ns)
			gap = replay->max_gap_ns;
	}
	replay->last_file_ns = time_ns;
	replay->have_first = true;
	replay->offset_ns = replay->offset_ns > UINT64_MAX - gap ? UINT64_MAX : replay->offset_ns + gap;
	return replay->offset_ns;
}

uint64_t send_replay_scale(const struct replay *replay, uint64_t offset_ns)
{
	struct wide product = wide_multiply(offset_ns, replay->speed_den);
	uint64_t rest;

	if (product.high >= replay->speed_num)
		return UINT64_MAX;
	return wide_divide(product, replay->speed_num, &rest);
}

enum fit { FITS, CUT_SHORT, OVERSIZED, OTHER_LINK };

static enum fit packet_fit(const struct send_run *run, const struct ktrxer_capture_packet *p)
{
	const bool ethernet = run->path.device.link == KTRXER_LINK_ETHERNET;
	const uint32_t most = run->path.device.mtu + (ethernet ? 14 : 0);

	if (p->linktype != (ethernet ? KTRXER_LINKTYPE_ETHERNET : KTRXER_LINKTYPE_RAW))
		return OTHER_LINK;
	if (p->length < p->original_length)
		return CUT_SHORT;
	/* A VLAN tag comes on top of the MTU. */
	if (p->length > most + (ethernet && p->length > 16 && p->data[12] == 0x81 && p->data[13] == 0 ? 4u : 0u))
		return OVERSIZED;
	return p->length < (ethernet ? 14u : 20u) ? CUT_SHORT : FITS;
}

static bool packet_abroad(const struct send_run *run, const struct ktrxer_capture_packet *p)
{
	struct ktrxer_frame_view view;

	(void)ktrxer_frame_read(&view, p->data, p->length, run->path.device.link);
	return view.version && !ktrxer_addr_is_local_use(&view.to);
}

static int replay_scan(struct send_run *run, struct ktrxer_error *err)
{
	struct replay *replay = &run->replay;
	struct replay_scan *scan = &replay->scan;
	struct ktrxer_capture_packet p;
	struct ktrxer_error damage;
	int64_t previous_ns = INT64_MIN;
	int rc;

	while ((rc = ktrxer_capture_next(replay->capture, &p, &damage)) == 1) {
		enum fit fit = packet_fit(run, &p);
		uint64_t before = replay->offset_ns;

		scan->packets++;
		scan->bytes += p.length;
		scan->cut_short += fit == CUT_SHORT;
		scan->oversized += fit == OVERSIZED;
		scan->other_link += fit == OTHER_LINK;
		scan->timeless += !p.has_time;
		scan->backwards += p.has_time && p.time_ns < previous_ns;
		previous_ns = p.has_time ? p.time_ns : previous_ns;
		scan->abroad += fit == FITS && packet_abroad(run, &p);
		send_replay_advance(replay, p.has_time, p.time_ns);
		if (replay->offset_ns - before > scan->longest_gap_ns)
			scan->longest_gap_ns = replay->offset_ns - before;
	}
	scan->span_ns = replay->offset_ns;
	scan->whole = rc == 0;
	if (rc < 0)
		memcpy(scan->damage, damage.text, sizeof scan->damage);
	if (!scan->packets)
		return ktrxer_fail(err, rc < 0 ? rc : -ENODATA, "%s: %s", run->o->pcap,
				   rc < 0 ? damage.text : "there is no packet in it");
	if (scan->other_link == scan->packets)
		return ktrxer_fail(err, -EOPNOTSUPP,
				   "%s: its packets begin with another link header than those of '%s' (%s)",
				   run->o->pcap, run->path.device.name,
				   run->path.device.link == KTRXER_LINK_ETHERNET ? "Ethernet" : "raw IP");
	if (scan->abroad && !run->o->flood)
		return ktrxer_fail(err, -EPERM,
				   "%s: %llu packets are for addresses that are not private, link-local or loopback: "
				   "--flood sends them all the same",
				   run->o->pcap, (unsigned long long)scan->abroad);
	return 0;
}

static void replay_rewind(struct replay *replay)
{
	replay->have_first = replay->far_back = false;
	replay->offset_ns = 0;
}

/* A stop must not wait for a silent pipe: its read ends then. */
struct pipe_end {
	int fd, stop_fd;
};

static ssize_t pipe_read(void *cookie, char *to, size_t size)
{
	const struct pipe_end *pipe = cookie;
	struct pollfd fds[2] = { { .fd = pipe->stop_fd, .events = POLLIN }, { .fd = pipe->fd, .events = POLLIN } };
	ssize_t n;

	do {
		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			return -1;
		if (fds[0].revents)
			return 0;
		n = fds[1].revents ? read(pipe->fd, to, size) : -1;
	} while (n < 0 && (!fds[1].revents || errno == EINTR || errno == EAGAIN));
	return n;
}

static int pipe_close(void *cookie)
{
	struct pipe_end *pipe = cookie;

	close(pipe->fd);
	free(pipe);
	return 0;
}

static int pipe_open(struct send_run *run, struct ktrxer_error *err)
{
	const bool standard = strcmp(run->o->pcap, "-") == 0;
	const char *name = standard ? "standard input" : run->o->pcap;
	const cookie_io_functions_t calls = { .read = pipe_read, .close = pipe_close };
	struct pipe_end *pipe = malloc(sizeof *pipe);
	FILE *stream;
	int rc;

	if (!pipe)
		return ktrxer_fail(err, -ENOMEM, "%s: no memory", name);
	/* Not blocking, since the opening of a named pipe would wait for its writer. */
	pipe->fd = standard ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3) : open(name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	pipe->stop_fd = run->cli->stop_fd;
	if (pipe->fd < 0) {
		rc = -errno;
		free(pipe);
		return ktrxer_fail(err, rc, "%s: %m", name);
	}
	stream = fopencookie(pipe, "r", calls);
	if (!stream) {
		pipe_close(pipe);
		return ktrxer_fail(err, -ENOMEM, "%s: no memory", name);
	}
	return ktrxer_capture_stream(&run->replay.capture, stream, name, err);
}

int send_replay_open(struct send_run *run, struct ktrxer_error *err)
{
	struct replay *replay = &run->replay;
	struct stat st;
	int rc;

	replay->speed_num = run->o->speed.given ? run->o->speed.num : 1;
	replay->speed_den = run->o->speed.given ? run->o->speed.den : 1;
	replay->max_gap_ns = run->o->max_gap_ns;
	replay->left = run->o->repeat - 1;
	if (strcmp(run->o->pcap, "-") != 0 && stat(run->o->pcap, &st) == 0 && S_ISREG(st.st_mode)) {
		rc = ktrxer_capture_open(&replay->capture, run->o->pcap, err);
		if (rc < 0)
			return rc;
		rc = replay_scan(run, err);
		ktrxer_capture_close(replay->capture);
		replay->capture = NULL;
		if (rc < 0)
			return rc;
		replay->scanned = true;
		replay_rewind(replay);
	} else if (run->o->repeat > 1) {
		return ktrxer_fail(err, -EINVAL, "--repeat needs a regular file: a pipe cannot be read again");
	} else {
		return pipe_open(run, err);
	}
	return ktrxer_capture_open(&replay->capture, run->o->pcap, err);
}

void send_replay_close(struct send_run *run)
{
	ktrxer_capture_close(run->replay.capture);
	run->replay.capture = NULL;
}

/* Begins the file again; its first packet follows the last one at once. */
static int replay_again(struct send_run *run, struct ktrxer_error *err)
{
	struct replay *replay = &run->replay;

	ktrxer_capture_close(replay->capture);
	replay->capture = NULL;
	replay->left--;
	replay->have_first = replay->far_back = false;
	return ktrxer_capture_open(&replay->capture, run->o->pcap, err);
}

int send_replay_next(struct send_run *run, uint64_t *offset_ns, struct ktrxer_error *err)
{
	struct replay *replay = &run->replay;

	for (;;) {
		int rc = ktrxer_capture_next(replay->capture, &replay->packet, err);
		enum fit fit;

		if (rc == 0 && replay->left) {
			if ((rc = replay_again(run, err)) < 0)
				return rc;
			continue;
		}
		if (rc <= 0)
			return rc == 0 ? -ENODATA : rc;
		*offset_ns = send_replay_scale(replay, send_replay_advance(replay, replay->packet.has_time,
									   replay->packet.time_ns));
		fit = packet_fit(run, &replay->packet);
		/* No scan of a pipe: a packet for a public address is found on the way. */
		if (fit == FITS && !replay->scanned && !run->o->flood && packet_abroad(run, &replay->packet))
			return ktrxer_fail(err, -EPERM,
					   "a packet is for an address that is not private, link-local or loopback: "
					   "--flood sends it all the same");
		if (fit == FITS)
			return 0;
		replay->refused_cut += fit == CUT_SHORT;
		replay->refused_size += fit == OVERSIZED;
		replay->refused_link += fit == OTHER_LINK;
	}
}
