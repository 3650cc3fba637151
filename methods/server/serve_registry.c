/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "serve_registry.h"

#include "limiter.h"
#include "serve_control.h"
#include "serve_session.h"

#include <errno.h>
#include <stdlib.h>

void registry_add(struct serve_registry *registry, struct session *session)
{
	session->id = ++registry->next_id;
	session->next = registry->sessions;
	registry->sessions = session;
}

struct session *registry_session(struct serve_registry *registry, uint32_t id)
{
	struct session *s = registry->sessions;

	while (s && (s->id != id || s->state == SESSION_CLOSING))
		s = s->next;
	return s;
}

uint32_t registry_clients(const struct serve_registry *registry)
{
	uint32_t n = 0;

	for (const struct session *s = registry->sessions; s; s = s->next)
		n += s->state != SESSION_NEW && s->state < SESSION_LEAVING;
	return n;
}

static bool same_address(const struct ktrxer_addr *a, const struct ktrxer_addr *b)
{
	return a->family == b->family && memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0;
}

void registry_trust(struct serve_registry *registry, const struct ktrxer_addr *addr, uint64_t now_ns)
{
	struct trusted_address *place = &registry->trusted[0];

	for (int i = 0; i < KTRXER_CONTROL_TRUSTED; i++) {
		struct trusted_address *p = &registry->trusted[i];

		if (same_address(&p->addr, addr)) {
			place = p;
			break;
		}
		if (p->until_ns < place->until_ns)
			place = p;
	}
	*place = (struct trusted_address){ *addr, now_ns + KTRXER_CONTROL_TRUSTED_S * (uint64_t)KTRXER_NS_PER_S };
}

bool registry_trusted(const struct serve_registry *registry, const struct ktrxer_addr *addr, uint64_t now_ns)
{
	for (int i = 0; i < KTRXER_CONTROL_TRUSTED; i++)
		if (registry->trusted[i].until_ns > now_ns && same_address(&registry->trusted[i].addr, addr))
			return true;
	return false;
}

static struct peer **peer_place(struct serve_registry *registry, const struct ktrxer_addr *addr, uint16_t port)
{
	const uint64_t mixed =
		load_be64(addr->bytes) ^ load_be64(addr->bytes + 8) ^ (uint64_t)port << 16 ^ registry->options.secret;

	return &registry->peers[limiter_mix(mixed) % SERVE_PEERS];
}

const struct peer *registry_peers(struct serve_registry *registry, const struct ktrxer_addr *addr, uint16_t port)
{
	return *peer_place(registry, addr, port);
}

static struct peer **tag_place(struct serve_registry *registry, uint64_t tag)
{
	return &registry->tags[limiter_mix(tag ^ registry->options.secret) % SERVE_PEERS];
}

struct peer *registry_tagged(struct serve_registry *registry, uint64_t tag)
{
	return *tag_place(registry, tag);
}

static void peer_put(struct serve_registry *registry, struct peer *peer, const struct ktrxer_addr *from, uint16_t port)
{
	struct peer **place = peer_place(registry, from, port);

	peer->next = *place;
	peer->addr = *from;
	peer->port = port;
	*place = peer;
}

static void peer_take(struct serve_registry *registry, struct peer *peer)
{
	struct peer **p = peer_place(registry, &peer->addr, peer->port);

	while (*p != peer)
		p = &(*p)->next;
	*p = peer->next;
}

int registry_peer_add(struct serve_registry *registry, struct session *session, uint32_t flow, uint64_t tag,
		      const struct ktrxer_addr *from, uint16_t port)
{
	struct peer **place = tag_place(registry, tag), *peer = malloc(sizeof *peer);

	if (!peer)
		return -ENOMEM;
	*peer = (struct peer){ .next_tag = *place, .tag = tag, .session = session, .flow = flow };
	*place = peer;
	peer_put(registry, peer, from, port);
	return 0;
}

void registry_peer_move(struct serve_registry *registry, struct peer *peer, const struct ktrxer_addr *from,
			uint16_t port)
{
	peer_take(registry, peer);
	peer_put(registry, peer, from, port);
}

void registry_peers_forget(struct serve_registry *registry, const struct session *session)
{
	for (int i = 0; i < SERVE_PEERS; i++)
		for (struct peer **p = &registry->tags[i]; *p;) {
			struct peer *one = *p;

			if (one->session != session) {
				p = &one->next_tag;
				continue;
			}
			*p = one->next_tag;
			peer_take(registry, one);
			free(one);
		}
}

void registry_remove(struct serve_registry *registry, struct session *session)
{
	registry_peers_forget(registry, session);
	for (struct session **s = &registry->sessions; *s; s = &(*s)->next)
		if (*s == session) {
			*s = session->next;
			break;
		}
}
