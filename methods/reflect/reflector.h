/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A STAMP reflector without its sockets: a packet becomes its answer in place, or there is a reason to stay silent. It
 * reads no clock and sends nothing.
 *
 * An answer is as long as its request, to the byte, never longer. Nothing goes to where an answer could do harm: to
 * addresses that are not one host's, to our own ports, to another reflector (what looks like an answer is not
 * answered), nor faster than the limit to one neighbourhood.
 *
 * Sessions (stateful mode) are made by the first packet of a 5-tuple and SSID, in a table of fixed size. A prefix has
 * at most a quarter of it. When no place is free, a new session takes the place of one whose prefix has far more
 * sessions. Else it is answered as in stateless mode: a flood of forged addresses costs no session its counts. RFC
 * 8972, 3 asks for sessions to be provisioned; here the first packet does that, unless authenticated mode asks more of
 * it.
 */
#ifndef KTRXER_METHODS_REFLECTOR_H
#define KTRXER_METHODS_REFLECTOR_H

#include "reflector_arrival.h"
#include "sha256.h"

enum { KTRXER_REFLECTOR_PACKET_MAX = 9216 /* jumbo frames; longer ones are not answered */ };

struct reflector_options {
	bool stateless;
	bool ptp; /* our timestamps are PTP's, not NTP's */
	uint32_t rate,
		/* answers of up to 512 bytes a second to each /24 and /56; larger ones count as several. 0: no limit */
		burst;
	uint64_t max_bps;                /* of all answers, by their UDP payload; 0: no limit */
	const struct hmac_key *auth_key; /* authenticated mode: nothing else is answered. Copied */
	const struct hmac_key *tlv_key;  /* open mode: for HMAC TLVs. Copied */
	/* Bit n: an answer may carry DSCP n because its request asks for it; for other peers and for trusted ones. */
	uint64_t dscp_granted, dscp_trusted;
	uint16_t own_ports[4]; /* never answered; 0 ends */
	uint64_t secret;       /* random: hides the order of the tables */
	/* Each session, when it has ended: see reflector_review(). NULL: no call. */
	void (*ended)(void *context, const struct reflector_client *client);
	void *context;
};
/* Other peers: best effort. Trusted ones: all but network control (CS6 and above). */
#define REFLECTOR_DSCP_DEFAULT 1ULL
#define REFLECTOR_DSCP_TRUSTED 0x0000ffffffffffffULL

enum reflector_verdict {
	REFLECTOR_ANSWER = 0,
	REFLECTOR_SHORT,     /* shorter than a test packet: an answer would be larger than it */
	REFLECTOR_LONG,      /* longer than we take */
	REFLECTOR_PORT,      /* from port 0, or one of our own */
	REFLECTOR_SOURCE,    /* from an address that is not one host's */
	REFLECTOR_TARGET,    /* to one: multicast or broadcast */
	REFLECTOR_REFLECTED, /* an answer itself */
	REFLECTOR_HMAC,      /* wrong, in authenticated mode */
	REFLECTOR_RATE,
	REFLECTOR_RATE_ALL, /* above the limit of all answers */
	REFLECTOR_VERDICTS,
};
extern const char *const reflector_verdict_names[REFLECTOR_VERDICTS];

struct reflector_answer {
	uint8_t tos; /* of the answer's IP header */
	bool auth;
	bool follow;      /* its stamp is wanted by reflector_sent() */
	uint32_t session; /* for it */
	uint32_t seq;
};

struct reflector;
int reflector_new(struct reflector **reflector, const struct reflector_options *options);
void reflector_free(struct reflector *reflector);

/* The quality of our clock, for the answers from now on. */
void reflector_set_clock(struct reflector *reflector, bool synchronised, uint64_t bound_ns);

/* The packet becomes its answer, all but T3. `whole`: the bytes that came, `length` those that are here. */
enum reflector_verdict reflector_answer(struct reflector *reflector, uint8_t *packet, uint32_t length, uint32_t whole,
					const struct reflector_arrival *arrival, struct reflector_answer *answer);
/* T3, at the last moment, and what depends on it. */
void reflector_finish(const struct reflector *reflector, uint8_t *packet, const struct reflector_answer *answer,
		      int64_t now_real_ns);
/*
 * The driver's or the NIC's stamp of an answer, once for each: a later answer of its session carries it. The session
 * may be gone.
 */
void reflector_sent(struct reflector *reflector, uint32_t session, uint32_t seq, int64_t real_ns, bool nic);

/*
 * Sessions that are idle end when their place is needed. Called regularly, this ends them in time, in the next 256
 * places of the table; `all`: it ends all sessions, for a reflector that stops.
 */
void reflector_review(struct reflector *reflector, bool all, uint64_t now_ns);

struct reflector_counts {
	uint64_t received;
	uint64_t verdicts[REFLECTOR_VERDICTS];
	uint64_t sessions;            /* made so far */
	uint64_t without_session;     /* answered as in stateless mode, since the table was full */
	uint64_t tlv_integrity;       /* requests whose TLVs failed their HMAC */
	uint64_t bytes_in, bytes_out; /* UDP payload of what came, and of the answers */
};
void reflector_counts(const struct reflector *reflector, struct reflector_counts *counts);

#endif
