/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Back end "packet": a tap (AF_PACKET) with a ring that is shared with the kernel.
 *
 * TPACKET_V2, not V3: V2 delivers each packet by itself, at once; V3 delivers blocks, and a block that is not full
 * waits for a timer of at least a millisecond, which a tool that reacts to an answer would feel (libpcap #335, #354,
 * #472, #572). V3 is better for packets of very different sizes. Here slots are for ordinary packets, and
 * PACKET_COPY_THRESH is for the large: those come whole by the socket's queue, and stay in order.
 *
 * The socket is made with protocol 0 and so receives nothing at all until bind(); by then filter and ring are in place.
 * There is nothing to drain, and no packet from before the rules.
 *
 * Stamps are the kernel's CLOCK_REALTIME ones, unless the NIC's are on and its clock can be read. SO_TIMESTAMPING is
 * asked for although the ring has stamps without it: only then does the kernel stamp at arrival, once for all taps, so
 * that libpcap on this host shows the same number; without, each tap would take its own time, later.
 */
#include "base_limits.h"
#include "rule_match.h"
#include "rx.h"

#include "bytes.h"
#include "clock.h"
#include "error.h"
#include "rule_filter.h"
#include "rx_watch.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if_arp.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/net_tstamp.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
	/* of the ring: larger packets (jumbo, merged by GRO) go by the socket's queue instead of making it shallow */
	KRX_SLOT_MAX = 4096,
	KRX_QUEUE_BYTES = 4 << 20,           /* for those: some sixty of the largest */
	KRX_CLOCK_AGE_NS = 10 * 1000 * 1000, /* between two samples of the clocks; a step is noticed that late */
};

#ifndef PACKET_IGNORE_OUTGOING
#define PACKET_IGNORE_OUTGOING 23 /* Linux 4.20 */
#endif

enum {
	TAG_SIZE = 4,
	TAG_AT = 12,     /* in the frame: behind the addresses */
	FILTER_MIN = 64, /* instructions: enough to look at the protocol, or at nothing */
	/* The kernel's data before the packet: its header, the address, alignment, room for a tag. */
	SLOT_HEADER = 128,
};

struct krx_backend_state {
	int fd;
	uint32_t device;       /* 0: all */
	enum ktrxer_link link; /* 0: each packet's own */
	uint8_t *ring;
	size_t ring_length;
	uint32_t slot_size, slots, slots_per_block, block_size;
	uint32_t at;               /* the slot that comes next */
	struct tpacket2_hdr *held; /* given to the caller, to be handed back */
	uint8_t *large;            /* room for a packet that came by the queue, behind TAG_SIZE bytes */
	uint64_t lost;
	uint64_t opened_ns;
	struct ktrxer_clock_map clocks;
	uint64_t last_mono_ns;
	struct krx_look look;
};

static int fail_errno(struct ktrxer_error *err, const char *what, const struct krx_backend_setup *setup)
{
	int code = -errno;
	char word[80];

	return ktrxer_fail(err, code, "%s: %s: %s", setup->device ? setup->device->name : "all devices", what,
			   ktrxer_strerror(code, word, sizeof word));
}

static int socket_make(struct krx_backend_state *s, struct ktrxer_error *err)
{
	s->fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (s->fd >= 0)
		return 0;
	switch (errno) {
	case EPERM:
	case EACCES:
		return krx_privilege_missing(err, "CAP_NET_RAW");
	case EAFNOSUPPORT:
		return ktrxer_fail(err, -EAFNOSUPPORT,
				   "this kernel has no packet sockets (CONFIG_PACKET); `modprobe af_packet` loads them "
				   "where they are a module");
	default:
		return ktrxer_fail(err, -errno, "no packet socket: %m");
	}
}

static int filter_attach(struct krx_backend_state *s, const struct krx_backend_setup *setup, bool skip_outgoing,
			 struct ktrxer_error *err)
{
	struct krx_filter_options options = {
		.link = s->link,
		.skip_outgoing = skip_outgoing,
		.snap = setup->options->snap_length,
	};
	struct krx_filter filter;
	struct sock_fprog program;

	/* Rules are matched on what the ring holds: the headers have to be in it, also for a smaller `snap`. */
	if (options.snap && options.snap < KRX_HEADERS_SNAP)
		options.snap = KRX_HEADERS_SNAP;
	/* Filters are paid from net.core.optmem_max, 20 KiB on older kernels: what finds no room is made coarser. */
	for (options.limit = BPF_MAXINSNS; options.limit >= FILTER_MIN; options.limit /= 2) {
		int ret = krx_filter_compile(&filter, setup->rules, &options), code;

		if (ret)
			return ktrxer_fail(err, ret, "no memory for the filter of %d rules",
					   krx_ruleset_count(setup->rules));
		program = (struct sock_fprog){ .len = filter.length, .filter = filter.code };
		ret = setsockopt(s->fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program);
		code = errno;
		krx_filter_free(&filter);
		if (!ret)
			return 0;
		errno = code;
		if (code != ENOMEM)
			break;
	}
	return fail_errno(err, "the kernel refuses the filter of the rules", setup);
}

/* Options that cost nothing when the kernel does not have them, and what it then does instead. */
static void options_try(struct krx_backend_state *s, bool skip_outgoing, bool nic)
{
	const int raw = SOF_TIMESTAMPING_RAW_HARDWARE;
	int on = 1, copies = 64, bytes = KRX_QUEUE_BYTES;
	int stamps = SOF_TIMESTAMPING_RX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE;

	/* Else the filter refuses what this host sends, after the price of a clone. */
	if (skip_outgoing)
		(void)setsockopt(s->fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof on);
	/* Packets larger than a slot are cut without it; length and original length show it. */
	(void)setsockopt(s->fd, SOL_PACKET, PACKET_COPY_THRESH, &copies, sizeof copies);
	if (setsockopt(s->fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes))
		(void)setsockopt(s->fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
	/* Else the stamp is taken when the tap sees the packet, some hundred nanoseconds later. */
	(void)setsockopt(s->fd, SOL_SOCKET, SO_TIMESTAMPING, &stamps, sizeof stamps);
	/* The ring has the kernel's stamps alone without it; with it, those of packets that the NIC has not stamped. */
	if (nic)
		(void)setsockopt(s->fd, SOL_PACKET, PACKET_TIMESTAMP, &raw, sizeof raw);
}

static int ring_map(struct krx_backend_state *s, const struct krx_backend_setup *setup, struct ktrxer_error *err)
{
	uint32_t page = (uint32_t)sysconf(_SC_PAGESIZE), bytes = setup->options->ring_bytes;
	uint32_t snap = setup->options->snap_length ? setup->options->snap_length : KRX_SNAP_MAX;
	struct tpacket_req request;
	int version = TPACKET_V2;
	uint32_t reserve = TAG_SIZE;

	if (setsockopt(s->fd, SOL_PACKET, PACKET_VERSION, &version, sizeof version))
		return fail_errno(err, "this kernel has no TPACKET_V2 (Linux 2.6.27)", setup);
	if (setsockopt(s->fd, SOL_PACKET, PACKET_RESERVE, &reserve, sizeof reserve))
		return fail_errno(err, "PACKET_RESERVE", setup);

	if (setup->device && snap > setup->device->mtu + ETH_HLEN + TAG_SIZE)
		snap = setup->device->mtu + ETH_HLEN + TAG_SIZE;
	if (snap < KRX_HEADERS_SNAP)
		snap = KRX_HEADERS_SNAP;
	s->slot_size = snap < KRX_SLOT_MAX - SLOT_HEADER ? TPACKET_ALIGN(snap + SLOT_HEADER) : KRX_SLOT_MAX;
	/* Blocks are the kernel's units of allocation; slots do not cross them, so large ones waste less. */
	s->block_size = page;
	while (s->block_size < s->slot_size || (s->block_size < 65536 && s->block_size * 2 <= bytes))
		s->block_size *= 2;
	s->slots_per_block = s->block_size / s->slot_size;
	for (;;) {
		uint32_t blocks = bytes / s->block_size ? bytes / s->block_size : 1;

		request = (struct tpacket_req){
			.tp_block_size = s->block_size,
			.tp_block_nr = blocks,
			.tp_frame_size = s->slot_size,
			.tp_frame_nr = blocks * s->slots_per_block,
		};
		if (!setsockopt(s->fd, SOL_PACKET, PACKET_RX_RING, &request, sizeof request))
			break;
		if (errno != ENOMEM || blocks == 1)
			return fail_errno(err, "no ring for the packets", setup);
		bytes /= 2;
	}
	s->slots = request.tp_frame_nr;
	s->ring_length = (size_t)request.tp_block_size * request.tp_block_nr;
	s->ring = mmap(NULL, s->ring_length, PROT_READ | PROT_WRITE, MAP_SHARED, s->fd, 0);
	if (s->ring == MAP_FAILED) {
		s->ring = NULL;
		return fail_errno(err, "the ring cannot be mapped", setup);
	}
	return 0;
}

static int listen_on(struct krx_backend_state *s, const struct krx_backend_setup *setup, struct ktrxer_error *err)
{
	struct sockaddr_ll address = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(ETH_P_ALL),
		.sll_ifindex = (int)s->device,
	};
	struct packet_mreq promiscuous = { .mr_ifindex = (int)s->device, .mr_type = PACKET_MR_PROMISC };
	struct timespec pause = { .tv_nsec = KRX_STAMPS_ON_NS };

	/* Goes with the socket, also on a kill. "All devices" means each as it is. */
	if (setup->options->promiscuous && s->device &&
	    setsockopt(s->fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &promiscuous, sizeof promiscuous))
		return fail_errno(err, "cannot be made promiscuous (do without that)", setup);
	nanosleep(&pause, NULL);
	ktrxer_clock_map_init(&s->clocks);
	s->opened_ns = ktrxer_now_ns();
	if (bind(s->fd, (struct sockaddr *)&address, sizeof address))
		return fail_errno(err, "cannot be listened to", setup);
	return 0;
}

static void packet_close(struct krx_backend_state *s)
{
	if (!s)
		return;
	if (s->ring)
		munmap(s->ring, s->ring_length);
	if (s->fd >= 0)
		close(s->fd);
	free(s->large);
	free(s);
}

static int packet_open(struct krx_backend_state **out, const struct krx_backend_setup *setup, struct ktrxer_error *err)
{
	struct krx_backend_state *s;
	bool skip_outgoing = !setup->options->see_outgoing;
	int ret;

	s = calloc(1, sizeof *s);
	if (!s)
		return ktrxer_fail(err, -ENOMEM, "receiver: no memory");
	s->fd = -1;
	if (setup->device) {
		s->device = setup->device->index;
		s->link = setup->device->link;
		/* On loopback everything would be seen twice, on its way out and on its way in. */
		skip_outgoing |= setup->device->loopback;
	}
	s->large = malloc(TAG_SIZE + KRX_SNAP_MAX);
	if (!s->large) {
		ret = ktrxer_fail(err, -ENOMEM, "receiver: no memory");
		goto fail;
	}
	ret = socket_make(s, err);
	if (ret)
		goto fail;
	options_try(s, skip_outgoing, setup->nic);
	ret = filter_attach(s, setup, skip_outgoing, err);
	if (!ret)
		ret = ring_map(s, setup, err);
	if (!ret)
		ret = listen_on(s, setup, err);
	if (ret)
		goto fail;
	*out = s;
	return 0;
fail:
	packet_close(s);
	return ret;
}

static int packet_fd(const struct krx_backend_state *s)
{
	return s->fd;
}

static struct tpacket2_hdr *slot_of(const struct krx_backend_state *s, uint32_t index)
{
	return (struct tpacket2_hdr *)(void *)(s->ring + (size_t)(index / s->slots_per_block) * s->block_size +
					       (size_t)(index % s->slots_per_block) * s->slot_size);
}

static void slot_return(struct krx_backend_state *s)
{
	if (s->held)
		__atomic_store_n(&s->held->tp_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
	s->held = NULL;
}

static enum ktrxer_link link_of(const struct krx_backend_state *s, uint16_t hardware)
{
	if (s->link)
		return s->link;
	return hardware == ARPHRD_ETHER || hardware == ARPHRD_LOOPBACK ? KTRXER_LINK_ETHERNET : KTRXER_LINK_RAW_IP;
}

/* The tag that the kernel (or the NIC) took off goes back to its place, in the four bytes kept free before `data`. */
static uint8_t *tag_restore(uint8_t *data, uint16_t tpid, uint16_t tci)
{
	memmove(data - TAG_SIZE, data, TAG_AT);
	data -= TAG_SIZE;
	store_be16(data + TAG_AT, tpid);
	store_be16(data + TAG_AT + 2, tci);
	return data;
}

/* False: only the part in the slot is there. */
static bool large_take(struct krx_backend_state *s, uint32_t length, uint32_t *got)
{
	ssize_t n = recv(s->fd, s->large + TAG_SIZE, KRX_SNAP_MAX, MSG_DONTWAIT);

	if (n < 0 && errno != EAGAIN && errno != EINTR)
		s->look.error = errno; /* of the device: the call has taken it from the socket */
	if (n < 0 || (uint32_t)n > length)
		return false;
	*got = (uint32_t)n;
	return true;
}

static void stamp_set(struct krx_backend_state *s, struct krx_packet *packet, const struct tpacket2_hdr *header,
		      uint32_t status)
{
	uint64_t now = ktrxer_now_ns(), earliest = s->opened_ns;

	/* Packets come in the order of their arrival, give or take what two processors differ by. */
	if (s->last_mono_ns > earliest + KRX_STAMP_BEFORE_NS)
		earliest = s->last_mono_ns - KRX_STAMP_BEFORE_NS;
	ktrxer_clock_map_refresh(&s->clocks, now, KRX_CLOCK_AGE_NS);
	packet->bound_ns = ktrxer_clock_map_bound(&s->clocks);
	packet->raw_ns = ktrxer_timespec_ns(header->tp_sec, header->tp_nsec);
	if (status & TP_STATUS_TS_RAW_HARDWARE) { /* rx.c knows that clock */
		packet->clock = KTRXER_CLOCK_PHC;
		packet->source = KTRXER_STAMP_USER;
		packet->mono_ns = now;
		return;
	}
	packet->clock = KTRXER_CLOCK_REALTIME;
	packet->source = KTRXER_STAMP_KERNEL;
	if (!ktrxer_clock_map_mono_checked(&s->clocks, packet->raw_ns, earliest, now, &packet->mono_ns)) {
		packet->mono_ns = now;
		packet->source = KTRXER_STAMP_USER;
	}
	s->last_mono_ns = packet->mono_ns;
}

static int packet_next(struct krx_backend_state *s, struct krx_packet *packet)
{
	struct tpacket2_hdr *header;
	struct sockaddr_ll address;
	uint32_t status, length;
	uint8_t *data;

	slot_return(s);
	header = slot_of(s, s->at);
	status = __atomic_load_n(&header->tp_status, __ATOMIC_ACQUIRE);
	if (!(status & TP_STATUS_USER))
		return krx_watch_look(&s->look, s->fd, s->device); /* the device may be down or gone */
	s->look.empty = false;
	s->held = header;
	s->at = s->at + 1 == s->slots ? 0 : s->at + 1;

	length = header->tp_snaplen;
	if (header->tp_mac < sizeof *header + TAG_SIZE || header->tp_mac > s->slot_size ||
	    length > s->slot_size - header->tp_mac)
		return -EBADMSG; /* the kernel does not do that: the ring is not what we think it is */
	memcpy(&address, (uint8_t *)header + TPACKET_ALIGN(sizeof *header), sizeof address);
	data = (uint8_t *)header + header->tp_mac;
	if (status & TP_STATUS_COPY && large_take(s, header->tp_len, &length))
		data = s->large + TAG_SIZE;

	memset(packet, 0, sizeof *packet);
	packet->link = (uint8_t)link_of(s, address.sll_hatype);
	packet->device = (uint32_t)address.sll_ifindex;
	packet->direction = address.sll_pkttype;
	packet->original_length = header->tp_len;
	if ((status & TP_STATUS_VLAN_VALID) && packet->link == KTRXER_LINK_ETHERNET && length >= TAG_AT) {
		uint16_t tpid = status & TP_STATUS_VLAN_TPID_VALID ? header->tp_vlan_tpid : ETH_P_8021Q;

		data = tag_restore(data, tpid, header->tp_vlan_tci);
		length += TAG_SIZE;
		packet->original_length += TAG_SIZE;
		packet->vlan_present = 1;
		packet->vlan_tci = header->tp_vlan_tci;
	}
	packet->data = data;
	packet->length = length;
	stamp_set(s, packet, header, status);
	return 1;
}

static int packet_losses(struct krx_backend_state *s, uint64_t *lost, uint64_t *clock_steps)
{
	struct tpacket_stats counts = { 0 };
	socklen_t length = sizeof counts;

	*lost = s->lost;
	*clock_steps = s->clocks.steps;
	/* Reading resets the kernel's counters. */
	if (getsockopt(s->fd, SOL_PACKET, PACKET_STATISTICS, &counts, &length))
		return -errno;
	s->lost += counts.tp_drops;
	*lost = s->lost;
	return 0;
}

const struct krx_backend krx_backend_packet = {
	.name = "packet",
	.ops = 1u << KRX_CAPTURE | 1u << KRX_FORWARD,
	.no_op = "is a tap and cannot drop; drops need the back end 'xdp', 'module' or 'nftables'",
	.why = "no rule drops, and a tap changes nothing about the device",
	.before_taps = false,
	.place = KRX_AT_TAPS,
	.after_gro = true,
	.nic_stamps = true,
	.open = packet_open,
	.close = packet_close,
	.fd = packet_fd,
	.next = packet_next,
	.losses = packet_losses,
};
