/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "reflector_session.h"

#include "base_limits.h"
#include "limiter.h"
#include "reflector_arrival.h"

#include <string.h>

enum {
	WAYS = 8,
	TRIAL_PACKETS = 16,
	GROUP_MAX = KTRXER_REFLECTOR_SESSIONS / 4,
	GROUP_FAIR = 64, /* sessions that a prefix has without fear of eviction */
	RESTART_SEQ = 1024,
};

static uint64_t hash_of(const struct reflector_arrival *a, uint16_t ssid, uint64_t secret)
{
	uint64_t h = secret, word;

	for (int i = 0; i < 16; i += 8) {
		memcpy(&word, a->from.bytes + i, 8);
		h = limiter_mix(h ^ word);
		memcpy(&word, a->to.bytes + i, 8);
		h = limiter_mix(h ^ word);
	}
	return limiter_mix(h ^ ((uint64_t)a->from_port << 32 | (uint64_t)a->to_port << 16 | ssid));
}

static bool is_it(const struct reflector_session *s, const struct reflector_arrival *a, uint16_t ssid)
{
	return s->used && s->ssid == ssid && s->from_port == a->from_port && s->to_port == a->to_port &&
	       ktrxer_addr_equal(&s->from, &a->from) && ktrxer_addr_equal(&s->to, &a->to);
}

static bool idle_for(const struct reflector_session *s, uint64_t seconds, uint64_t now_ns)
{
	return !s->used || (now_ns > s->seen_ns && now_ns - s->seen_ns > seconds * (uint64_t)KTRXER_NS_PER_S);
}

static bool is_over(const struct reflector_session *s, uint64_t now_ns)
{
	return idle_for(s, KTRXER_REFLECTOR_IDLE_S, now_ns);
}

/* Another session may take its place. Where none does, a slow sender keeps its count (RFC 8762, 4.3.1). */
static bool gives_room(const struct reflector_session *s, uint64_t now_ns)
{
	return idle_for(s, s->received < TRIAL_PACKETS ? KTRXER_REFLECTOR_TRIAL_S : KTRXER_REFLECTOR_IDLE_S, now_ns);
}

/* A session without a packet since the last report is not reported again. */
static void report(struct reflector_sessions *sessions, struct reflector_session *s, enum reflector_end end)
{
	if (KTRXER_SERVER_EXTRAS && sessions->ended && s->reported_ns != s->seen_ns) {
		const struct reflector_client client = { .from = s->from,
							 .from_port = s->from_port,
							 .answers = s->sent,
							 .bytes = s->bytes,
							 .began_ns = s->began_ns,
							 .seen_ns = s->seen_ns,
							 .end = end };

		s->reported_ns = s->seen_ns;
		sessions->ended(sessions->context, &client);
	}
}

static void forget(struct reflector_sessions *sessions, struct reflector_session *s, enum reflector_end end)
{
	if (!s->used)
		return;
	sessions->counts[s->group]--;
	s->used = false;
	report(sessions, s, end);
}

void reflector_sessions_review(struct reflector_sessions *sessions, int places, bool all, uint64_t now_ns)
{
	while (places--) {
		struct reflector_session *s = &sessions->table[sessions->reviewed];

		sessions->reviewed = (sessions->reviewed + 1) % KTRXER_REFLECTOR_SESSIONS;
		if (all || is_over(s, now_ns))
			forget(sessions, s, is_over(s, now_ns) ? REFLECTOR_IDLE : REFLECTOR_STOPPED);
		else if (!s->reported_ns && gives_room(s, now_ns))
			report(sessions, s, REFLECTOR_IDLE);
	}
}

/* Sessions of this prefix that are over still count until they are looked for, at most once a second. */
static bool group_has_room(struct reflector_sessions *sessions, uint16_t group, uint64_t now_ns)
{
	if (sessions->counts[group] < GROUP_MAX)
		return true;
	if (now_ns - sessions->swept_ns >= (uint64_t)KTRXER_NS_PER_S) {
		sessions->swept_ns = now_ns;
		for (int i = 0; i < KTRXER_REFLECTOR_SESSIONS; i++)
			if (gives_room(&sessions->table[i], now_ns))
				forget(sessions, &sessions->table[i], REFLECTOR_IDLE);
	}
	return sessions->counts[group] < GROUP_MAX;
}

/* The session of the set whose prefix has most sessions, if those are far more than the newcomer's; else NULL. */
static struct reflector_session *greediest(const struct reflector_sessions *sessions, struct reflector_session *set,
					   uint16_t group)
{
	struct reflector_session *found = &set[0];

	for (int i = 1; i < WAYS; i++)
		if (sessions->counts[set[i].group] > sessions->counts[found->group])
			found = &set[i];
	return sessions->counts[found->group] > GROUP_FAIR + 2u * sessions->counts[group] ? found : NULL;
}

/* A request 0 that the path has reordered or duplicated is neither so late nor so far behind. */
static bool starts_again(const struct reflector_session *s, uint32_t seq, uint64_t now_ns)
{
	const bool was_idle = now_ns > s->seen_ns && now_ns - s->seen_ns >= (uint64_t)KTRXER_NS_PER_S;

	return seq == 0 && s->last_seq &&
	       (was_idle || (s->last_seq >= RESTART_SEQ && s->last_seq < UINT32_MAX - RESTART_SEQ));
}

struct reflector_session *reflector_session_of(struct reflector_sessions *sessions, const struct reflector_arrival *a,
					       uint16_t ssid, uint32_t seq)
{
	const uint16_t group = limiter_mix(limiter_prefix(&a->from) ^ sessions->secret) % KTRXER_REFLECTOR_GROUPS;
	struct reflector_session *set, *room = NULL;
	enum reflector_end end = REFLECTOR_IDLE;
	uint8_t serial;

	set = &sessions->table[hash_of(a, ssid, sessions->secret) % (KTRXER_REFLECTOR_SESSIONS / WAYS) * WAYS];
	for (int i = 0; i < WAYS; i++) {
		if (is_it(&set[i], a, ssid)) {
			/*
			 * A session that was idle for too long begins anew, as it would have if another had taken its
			 * place.
			 */
			room = &set[i];
			if (!is_over(room, a->now_ns) && !starts_again(room, seq, a->now_ns))
				goto seen;
			if (!is_over(room, a->now_ns))
				end = REFLECTOR_RESTARTED;
			break;
		}
		if (!room && gives_room(&set[i], a->now_ns))
			room = &set[i];
	}
	if (!room && (room = greediest(sessions, set, group))) {
		sessions->evicted++;
		end = REFLECTOR_DISPLACED;
	}
	if (room)
		forget(sessions, room, end);
	if (!room || !group_has_room(sessions, group, a->now_ns)) {
		sessions->refused++;
		return NULL;
	}
	sessions->counts[group]++;
	serial = (uint8_t)(room->serial + 1);
	*room = (struct reflector_session){ .from = a->from,
					    .to = a->to,
					    .from_port = a->from_port,
					    .to_port = a->to_port,
					    .ssid = ssid,
					    .group = group,
					    .used = true,
					    .serial = serial,
					    .began_ns = a->now_ns,
					    .next_seq = seq };
	sessions->made++;
seen:
	room->seen_ns = a->now_ns;
	room->last_seq = seq;
	return room;
}

void reflector_session_count(struct reflector_session *s, uint32_t seq, uint32_t length)
{
	const enum sequence_found found = sequence_add(s->answered, KTRXER_REFLECTOR_SEQUENCES, &s->next_seq, seq);

	s->received++;
	s->sent++;
	if (KTRXER_SERVER_EXTRAS)
		s->bytes += length;
	s->copies += found == SEQUENCE_SEEN;
	s->copies_unknown |= found == SEQUENCE_OLD;
}

void reflector_session_left(struct reflector_session *s, const struct reflector_left *left)
{
	if (sequence_add(&s->stamped, REFLECTOR_STAMPED, &s->next_stamped, left->seq) != SEQUENCE_NEW)
		return;
	s->left[(s->left_first + s->left_count) % KTRXER_REFLECTOR_LEFT] = *left;
	if (s->left_count < KTRXER_REFLECTOR_LEFT)
		s->left_count++;
	else
		s->left_first = (s->left_first + 1) % KTRXER_REFLECTOR_LEFT;
}

bool reflector_session_report(struct reflector_session *s, struct reflector_left *left)
{
	if (!s->left_count)
		return false;
	*left = s->left[s->left_first];
	s->left_first = (s->left_first + 1) % KTRXER_REFLECTOR_LEFT;
	s->left_count--;
	return true;
}

uint32_t reflector_session_name(const struct reflector_sessions *sessions, const struct reflector_session *s)
{
	return (uint32_t)(s - sessions->table) << 8 | s->serial;
}

struct reflector_session *reflector_session_by_name(struct reflector_sessions *sessions, uint32_t name)
{
	struct reflector_session *s;

	if (name >> 8 >= KTRXER_REFLECTOR_SESSIONS)
		return NULL;
	s = &sessions->table[name >> 8];
	return s->used && s->serial == (uint8_t)name ? s : NULL;
}
