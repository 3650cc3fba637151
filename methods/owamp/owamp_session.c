/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "owamp_session.h"

#include "bytes.h"
#include "clock.h"
#include "clock_sync.h"
#include "name.h"
#include "stamp_packet.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	HEADERS_V4 = 28,
	HEADERS_V6 = 48,
	LOST_TTL = 255,
	LOOKS = 512 /* at packets, of one call */
};
/*
 * RFC 4656, 3.9, wants the scale 64, for which its six bits have no room. 63 is 68 years: no bound, for readers.
 */
#define LOST_ERROR (63u << 8 | 1)
#define BPS_MOST 10000000ULL /* mean rate of a session, where the server has no limit of its own */

static uint16_t own_error(void)
{
	struct clock_sync sync;
	struct stamp_error error = { 0 };

	clock_sync_read(&sync);
	error.synchronised = sync.synchronised;
	error.bound_ns = sync.bound_ns;
	return stamp_error_write(&error);
}

uint64_t owamp_session_lasts_ns(const struct owamp_session *s)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < s->request.slots; i++) {
		const uint64_t ns = owamp_time_to_ns(s->slots[i].time);

		sum += ns < UINT32_MAX * (uint64_t)KTRXER_NS_PER_S / OWAMP_SLOTS_MOST ? ns
										      : UINT64_MAX / OWAMP_SLOTS_MOST;
	}
	sum /= s->request.slots;
	return sum < UINT64_MAX / OWAMP_SERVER_PACKETS ? sum * s->request.packets : UINT64_MAX;
}

uint64_t owamp_session_bps(const struct owamp_session *s)
{
	const struct owamp_request *r = &s->request;
	/* Below 2^32, because check() has bounded packets and padding: the product does not overflow. */
	const uint64_t bits =
		8ull * r->packets * (OWAMP_TEST_BYTES + r->padding + (r->version == 6 ? HEADERS_V6 : HEADERS_V4));

	return bits * (uint64_t)KTRXER_NS_PER_S / owamp_session_lasts_ns(s);
}

/* ---------------------------------------------------------------------------------------------------------- opening */

static bool same_address(const struct ktrxer_addr *addr, const uint8_t bytes[16], uint8_t version)
{
	static const uint8_t none[16];
	const size_t length = addr->family == AF_INET6 ? 16 : 4;

	return (addr->family == AF_INET6 ? 6 : 4) == version &&
	       (memcmp(addr->bytes, bytes, length) == 0 || memcmp(none, bytes, length) == 0);
}

static uint8_t check(const struct owamp_session *s, const struct owamp_ends *ends, const struct owamp_server_options *o)
{
	const struct owamp_request *r = &s->request;
	const uint64_t lasts_ns = owamp_session_lasts_ns(s), most = o->max_bps ? o->max_bps : BPS_MOST;
	const int64_t now_ns = ktrxer_real_now_ns();
	int64_t start_ns;

	/* Sessions between other hosts, and between this host and itself, are not for this server. */
	if (r->conf_sender == r->conf_receiver ||
	    !same_address(&ends->client, s->sends ? r->receiver : r->sender, r->version) ||
	    !same_address(&ends->server, s->sends ? r->sender : r->receiver, r->version))
		return OWAMP_NOT_SUPPORTED;
	if (!(s->sends ? r->receiver_port : r->sender_port) || r->padding > OWAMP_PADDING_MOST)
		return OWAMP_NOT_SUPPORTED;
	/* A receiver need not know the packets' type (RFC 4656, 3.5). */
	if (s->sends && (r->type_p & 0xc0ffffff || !(o->dscp_granted >> (r->type_p >> 24 & 63) & 1)))
		return OWAMP_NOT_SUPPORTED;
	for (uint32_t i = 0; i < r->slots; i++)
		if (s->slots[i].type > OWAMP_SLOT_FIXED)
			return OWAMP_NOT_SUPPORTED;
	if (!stamp_time_to_ns(&start_ns, r->start, false, now_ns) ||
	    start_ns - now_ns > OWAMP_SERVER_AHEAD_S * KTRXER_NS_PER_S)
		return OWAMP_NEVER;
	if (!r->packets || r->packets > OWAMP_SERVER_PACKETS || !lasts_ns || lasts_ns > o->max_ns ||
	    owamp_time_to_ns(r->timeout) > o->max_ns)
		return OWAMP_NEVER;
	return owamp_session_bps(s) > most ? OWAMP_NEVER : OWAMP_OK;
}

static bool receiver_open(struct owamp_session *s, const struct owamp_ends *ends)
{
	union ktrxer_name name;
	socklen_t length;

	s->fd = socket(ends->client.family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (s->fd < 0)
		return false;
	owamp_socket_prepare(s->fd, ends->client.family);
	length = ktrxer_name_make(&name, &ends->server, 0);
	if (bind(s->fd, &name.sa, length) != 0)
		return false;
	length = ktrxer_name_make(&name, &ends->client, s->request.sender_port);
	if (connect(s->fd, &name.sa, length) != 0)
		return false;
	length = sizeof name;
	if (getsockname(s->fd, &name.sa, &length) != 0)
		return false;
	s->request.receiver_port = ntohs(ends->client.family == AF_INET6 ? name.v6.sin6_port : name.v4.sin_port);
	return true;
}

static bool sender_open(struct owamp_session *s, const struct owamp_ends *ends)
{
	const struct owamp_sender_options o = { .loop = s->loop,
						.from = ends->server,
						.to = ends->client,
						.dscp = (uint8_t)(s->request.type_p >> 24),
						.padding = s->request.padding,
						.timeout_ns = owamp_time_to_ns(s->request.timeout) };

	s->sender = calloc(1, sizeof *s->sender);
	if (!s->sender || owamp_sender_open(s->sender, &o, NULL) < 0)
		return false;
	s->request.sender_port = s->sender->port;
	return true;
}

/* The receiver chooses it: address, time, and a random number (RFC 4656, 3.5). */
static bool identify(struct owamp_session *s, const struct owamp_ends *ends)
{
	memcpy(s->request.sid, ends->server.bytes + (ends->server.family == AF_INET6 ? 12 : 0), 4);
	store_be64(s->request.sid + 4, stamp_time_of_ns(ktrxer_real_now_ns(), false));
	return getrandom(s->request.sid + 12, 4, 0) == 4;
}

uint8_t owamp_session_open(struct owamp_session *s, struct loop *loop, const struct owamp_request *request,
			   const struct owamp_slot *slots, const struct owamp_ends *ends,
			   const struct owamp_server_options *limits)
{
	uint8_t accept;

	*s = (struct owamp_session){ .loop = loop, .fd = -1, .sends = request->conf_sender, .request = *request };
	if (!request->slots || request->slots > OWAMP_SLOTS_MOST)
		return OWAMP_NOT_SUPPORTED;
	memcpy(s->slots, slots, request->slots * sizeof *slots);
	accept = check(s, ends, limits);
	if (accept != OWAMP_OK)
		return accept;
	if (s->sends ? !sender_open(s, ends) : !receiver_open(s, ends) || !identify(s, ends))
		accept = OWAMP_BUSY;
	/* The receiver takes packets from now on: its sender may begin before the answer has left. */
	else if (!s->sends && owamp_receiver_begin(&s->receiver, loop, s->fd, request->packets, own_error()) < 0)
		accept = OWAMP_INTERNAL;
	if (accept != OWAMP_OK)
		owamp_session_close(s);
	return accept;
}

int owamp_session_start(struct owamp_session *s)
{
	struct owamp_sender_plan plan = { .to_port = s->request.receiver_port,
					  .slots = s->slots,
					  .slot_count = s->request.slots,
					  .packets = s->request.packets,
					  .error = own_error() };

	if (!s->sends)
		return 0;
	memcpy(plan.sid, s->request.sid, OWAMP_SID);
	if (!stamp_time_to_ns(&plan.start_real_ns, s->request.start, false, ktrxer_real_now_ns()))
		return -EINVAL;
	return owamp_sender_begin(s->sender, &plan, NULL);
}

void owamp_session_stop(struct owamp_session *s)
{
	s->stopped = true;
	s->stopped_ns = ktrxer_real_now_ns();
	if (!s->sends)
		return;
	owamp_sender_stop(s->sender);
	s->next = s->sender->next;
	s->skips = s->sender->skips;
}

void owamp_session_close(struct owamp_session *s)
{
	if (s->sender)
		owamp_sender_end(s->sender);
	free(s->sender);
	owamp_receiver_end(&s->receiver);
	free(s->skip);
	if (s->fd >= 0)
		close(s->fd);
	*s = (struct owamp_session){ .fd = -1 };
}

/* ---------------------------------------------------------------------------------------------------------- records */

/* An arrival that the sender has not disowned by its last number. */
static bool arrival_counts(const struct owamp_session *s, const struct owamp_fetched_rest *f)
{
	const uint32_t seq = s->receiver.records[f->record].seq;

	return f->begin <= seq && seq <= f->end && seq < s->next;
}

/* A packet that was sent and has not arrived. The ranges of skipped ones are in order, and so are the calls. */
static bool is_lost(const struct owamp_session *s, struct owamp_fetched_rest *f)
{
	while (f->skip < s->skips && s->skip[f->skip].last < f->seq)
		f->skip++;
	return f->begin <= f->seq && f->seq <= f->end && f->seq < s->decided &&
	       !(s->receiver.seen[f->seq / 8] & 1 << f->seq % 8) &&
	       !(f->skip < s->skips && s->skip[f->skip].first <= f->seq);
}

static uint32_t records_count(const struct owamp_session *s, uint32_t begin, uint32_t end)
{
	struct owamp_fetched_rest f = { .begin = begin, .end = end };
	uint32_t records = 0;

	for (; f.record < s->receiver.count; f.record++)
		records += arrival_counts(s, &f);
	for (; f.seq < s->next; f.seq++)
		records += is_lost(s, &f);
	return records;
}

bool owamp_session_has_records(const struct owamp_session *s)
{
	return !s->sends && s->stopped && s->receiver.after <= s->next;
}

int owamp_session_fetch(struct owamp_session *s, uint32_t begin, uint32_t end, struct owamp_fetched_rest *rest)
{
	struct owamp_judge_plan plan = { .slots = s->slots,
					 .slot_count = s->request.slots,
					 .timeout_ns = (int64_t)owamp_time_to_ns(s->request.timeout),
					 .end_ns = s->stopped_ns };
	int rc = owamp_schedule_begin(&rest->schedule, s->request.sid, s->slots, s->request.slots);

	*rest = (struct owamp_fetched_rest){ .schedule = rest->schedule, .begin = begin, .end = end };
	/* The count of records, which comes first, must stay true. */
	owamp_receiver_stop(&s->receiver);
	memcpy(plan.sid, s->request.sid, OWAMP_SID);
	(void)stamp_time_to_ns(&plan.start_ns, s->request.start, false, s->stopped_ns);
	if (rc == 0 && !s->judged)
		rc = owamp_judge_begin(&rest->judge, &s->receiver, &plan);
	rest->session = s;
	return rc;
}

static size_t head_write(struct owamp_fetched_rest *rest, uint8_t *to)
{
	const struct owamp_session *s = rest->session;
	const size_t slots = OWAMP_COMMAND_BYTES + OWAMP_REQUEST_BYTES,
		     ranges = slots + (size_t)s->request.slots * OWAMP_SLOT_BYTES + OWAMP_HMAC_BYTES,
		     length = ranges + owamp_padded((size_t)s->skips * OWAMP_SKIP_BYTES) + OWAMP_HMAC_BYTES;
	struct owamp_fetched fetched = { .accept = OWAMP_OK, .finished = true, .next = s->next, .skips = s->skips };
	size_t bytes;

	rest->head = true;
	fetched.records = records_count(s, rest->begin, rest->end);
	bytes = (size_t)fetched.records * OWAMP_RECORD_BYTES;
	rest->padding = owamp_padded(bytes) - bytes + OWAMP_HMAC_BYTES;
	memset(to, 0, length);
	owamp_fetched_write(to, &fetched);
	owamp_request_write(to + OWAMP_COMMAND_BYTES, &s->request);
	for (uint32_t i = 0; i < s->request.slots; i++)
		owamp_slot_write(to + slots + (size_t)i * OWAMP_SLOT_BYTES, &s->slots[i]);
	for (uint32_t i = 0; i < s->skips; i++)
		owamp_skip_write(to + ranges + (size_t)i * OWAMP_SKIP_BYTES, &s->skip[i]);
	return length;
}

/* The record of what is looked at next, if it is one of the answer. Lost packets have the time of their schedule. */
static bool record_next(struct owamp_fetched_rest *f, struct owamp_record *record)
{
	const struct owamp_session *s = f->session;
	bool counts;

	if (f->record < s->receiver.count) {
		counts = arrival_counts(s, f);
		*record = s->receiver.records[f->record++];
		return counts;
	}
	*record = (struct owamp_record){
		.seq = f->seq, .send_error = LOST_ERROR, .receive_error = s->receiver.error, .ttl = LOST_TTL
	};
	/* The limits of a session keep all times below those that a schedule cannot have. */
	if (owamp_schedule_next(&f->schedule, &record->sent) == 0)
		record->sent += s->request.start;
	counts = is_lost(s, f);
	f->seq++;
	return counts;
}

size_t owamp_fetched_next(struct owamp_fetched_rest *f, uint8_t *to, size_t size)
{
	struct owamp_session *s = f->session;
	size_t at = 0;

	if (!s->judged) {
		s->judged = !owamp_judge_some(&f->judge, LOOKS);
		s->decided = f->judge.decided;
		return 0;
	}
	if (!f->head)
		return head_write(f, to);
	for (int looks = 0; looks < LOOKS && (f->record < s->receiver.count || f->seq < s->next); looks++) {
		struct owamp_record record;

		if (at + OWAMP_RECORD_BYTES > size)
			return at;
		if (record_next(f, &record)) {
			owamp_record_write(to + at, &record);
			at += OWAMP_RECORD_BYTES;
		}
	}
	if (f->record < s->receiver.count || f->seq < s->next || at + f->padding > size)
		return at;
	memset(to + at, 0, f->padding);
	at += f->padding;
	owamp_fetched_end(f);
	return at;
}

void owamp_fetched_end(struct owamp_fetched_rest *f)
{
	if (f->session) {
		owamp_schedule_end(&f->schedule);
		owamp_judge_end(&f->judge);
	}
	f->session = NULL;
}
