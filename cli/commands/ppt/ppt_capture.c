/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "ppt_samples.h"

#include "error.h"
#include "packet_text.h"
#include "pcapng.h"

#include <errno.h>
#include <stdlib.h>

enum {
	ETHERNET_HEADER = 14,
	FRAME_MIN = 64, /* with its check sequence; shorter ones are padded */
	CHECK_SEQUENCE = 4,
	PREAMBLE = 8, /* and start delimiter */
};

struct arrivals {
	struct ppt_arrival *list;
	size_t count, room;
};

static int arrivals_add(struct arrivals *a, const struct ktrxer_capture_packet *p, uint16_t from_port, const char *name,
			struct ktrxer_error *err)
{
	uint32_t frame =
		p->original_length + (p->linktype == KTRXER_LINKTYPE_RAW ? ETHERNET_HEADER : 0) + CHECK_SEQUENCE;

	if (a->count == a->room) {
		size_t room = a->room ? 2 * a->room : 1024;
		struct ppt_arrival *list;

		if (a->room >= KTRXER_PPT_SAMPLES_MAX)
			return ktrxer_fail(err, -E2BIG, "%s: more than %d packets of probes: split the capture", name,
					   KTRXER_PPT_SAMPLES_MAX);
		list = realloc(a->list, room * sizeof *list);
		if (!list)
			return ktrxer_fail(err, -ENOMEM, "%s: no memory for %zu packets", name, room);
		a->list = list;
		a->room = room;
	}
	a->list[a->count++] =
		(struct ppt_arrival){ p->time_ns, (frame < FRAME_MIN ? FRAME_MIN : frame) + PREAMBLE, from_port };
	return 0;
}

static bool udp_of(struct packet_udp *udp, const struct ktrxer_capture_packet *p)
{
	if (p->linktype != KTRXER_LINKTYPE_ETHERNET && p->linktype != KTRXER_LINKTYPE_RAW)
		return false;
	return packet_udp(udp, p->data, p->length,
			  p->linktype == KTRXER_LINKTYPE_RAW ? KTRXER_LINK_RAW_IP : KTRXER_LINK_ETHERNET);
}

/* `ktrxer ppt measure` sends each size from a port of its own. */
static bool same_hosts(const struct ppt_capture_counts *c, const struct packet_udp *udp)
{
	return udp->to_port == c->to_port && ktrxer_addr_equal(&udp->from, &c->from) &&
	       ktrxer_addr_equal(&udp->to, &c->to);
}

static int take(struct arrivals *a, const struct ktrxer_capture_packet *p, uint16_t port, const char *name,
		struct ppt_capture_counts *c, struct ktrxer_error *err)
{
	struct packet_udp udp;

	if (p->original_length > UINT16_MAX || !udp_of(&udp, p) || (port && udp.to_port != port)) {
		c->other_packets++;
		return 0;
	}
	if (!c->packets) {
		c->from = udp.from;
		c->to = udp.to;
		c->from_port = udp.from_port;
		c->to_port = udp.to_port;
	} else if (!same_hosts(c, &udp)) {
		c->other_flows++;
		return 0;
	}
	c->packets++;
	if (p->has_time)
		return arrivals_add(a, p, udp.from_port, name, err);
	c->no_time++;
	return 0;
}

static int probes_of(struct ppt_samples *s, const struct arrivals *a, const char *name, struct ppt_capture_counts *c,
		     struct ktrxer_error *err)
{
	size_t room = a->count / 2 ? a->count / 2 : 1;
	int rc;

	s->sizes = calloc(room, sizeof *s->sizes);
	s->gaps_ns = calloc(room, sizeof *s->gaps_ns);
	if (!s->sizes || !s->gaps_ns)
		return ktrxer_fail(err, -ENOMEM, "%s: no memory for %zu gaps", name, room);
	s->room = room;
	rc = ppt_compound(a->list, a->count, s->sizes, s->gaps_ns, &c->compound);
	s->count = c->compound.probes;
	if (rc == -ENOMEM)
		return ktrxer_fail(err, rc, "%s: no memory for the times of %zu packets", name, a->count);
	if (rc < 0)
		return ktrxer_fail(err, -ENODATA,
				   "%s: no compound probe (a large packet and a smaller one right behind it) among %zu "
				   "packets of the flow and "
				   "%zu other packets",
				   name, c->packets, c->other_packets);
	return 0;
}

int ppt_capture_read(struct ppt_samples *s, FILE *stream, const char *name, uint16_t port, struct ppt_capture_counts *c,
		     struct ktrxer_error *err)
{
	struct ktrxer_capture_packet packet;
	struct arrivals arrivals = { 0 };
	struct ktrxer_capture *capture;
	int rc;

	*s = (struct ppt_samples){ 0 };
	*c = (struct ppt_capture_counts){ 0 };
	rc = ktrxer_capture_stream(&capture, stream, name, err);
	if (rc < 0)
		return rc;
	while ((rc = ktrxer_capture_next(capture, &packet, err)) == 1)
		if ((rc = take(&arrivals, &packet, port, name, c, err)) < 0)
			break;
	if (rc == 0 && c->other_flows && !port)
		rc = ktrxer_fail(err, -EINVAL,
				 "%s: it has several UDP flows: choose that of the probes by their destination port",
				 name);
	if (rc == 0)
		rc = probes_of(s, &arrivals, name, c, err);
	ktrxer_capture_close(capture);
	free(arrivals.list);
	return rc;
}
