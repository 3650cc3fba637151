/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "host_times.h"

#include "clock.h"
#include "error.h"
#include "message.h"
#include "name.h"
#include "phc.h"
#include "stamp_packet.h"
#include "txstamp.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ANSWERS = 64 }; /* of the far host, whose driver's stamp is awaited */
#define NIC_WAIT_NS (10 * (uint64_t)KTRXER_NS_PER_MS)
#define NEAR_NS (100 * (uint64_t)KTRXER_NS_PER_MS) /* a NIC stamp lies so near to the kernel's */

/* The stamps of one probe and its answer, on CLOCK_REALTIME, but those of the NIC on CLOCK_MONOTONIC; 0: none. */
struct trip {
	uint32_t number, key; /* key: of its datagram, as the kernel counts them */
	uint64_t time;        /* in the packet */
	int64_t user_ns, sched_ns, driver_ns, nic_sent_raw_ns, received_ns, nic_received_raw_ns, returned_ns;
	int64_t t2_ns, t3_ns; /* on the far host's clock */
	bool answered;
};

struct run {
	const struct host_times_options *o;
	struct host_times *t;
	int fd;
	struct ktrxer_clock_map clock;
	struct phc phc;
	struct trip trip;
	uint16_t ssid;
	uint32_t length;
	bool counts; /* the probe is not one of HOST_WARM_UP */
	struct {
		uint32_t seq;
		int64_t t3_ns;
	} answers[ANSWERS];
	uint8_t packet[HOST_PAYLOAD_MOST + 1];
};

void host_times_record(struct host_times *t, enum host_layer layer, int64_t from_ns, int64_t to_ns, uint64_t most_ns)
{
	if (!from_ns || !to_ns)
		return;
	if (to_ns < from_ns || (uint64_t)to_ns - (uint64_t)from_ns > most_ns)
		t->contradicted++;
	else
		ktrxer_hist_record(t->layers[layer], to_ns - from_ns);
}

static void open_nic(struct run *run)
{
	const struct host_times_options *o = run->o;
	int what = PHC_SENT | PHC_RECEIVED | PHC_ALL;
	int rc = o->device ? ktrxer_phc_open(&run->phc, o->device, o->device_index, what) : -ENODEV;

	if (rc == -EOPNOTSUPP)
		rc = ktrxer_phc_open(&run->phc, o->device, o->device_index, what = PHC_SENT);
	if (rc == 0 && (rc = ktrxer_txstamp_add_nic(run->fd)) < 0)
		ktrxer_phc_close(&run->phc);
	run->t->nic_error = rc;
	run->t->nic_sent = rc == 0;
	run->t->nic_received = rc == 0 && what & PHC_RECEIVED;
}

static int open_socket(struct run *run, struct ktrxer_error *err)
{
	const struct host_times_options *o = run->o;
	union ktrxer_name name;
	socklen_t length;
	int rc;

	run->fd = socket(o->to.family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (run->fd < 0) {
		rc = -errno;
		return ktrxer_fail(err, rc, "no UDP socket: %m");
	}
	rc = ktrxer_txstamp_enable(run->fd);
	if (rc < 0)
		return ktrxer_fail(err, rc, "this kernel does not stamp datagrams (SO_TIMESTAMPING): %s",
				   "the times of its layers are not known");
	ktrxer_txstamp_add_sched(run->fd); /* without it the layer stays empty */
#ifndef KTRXER_SMALL
	ktrxer_txstamp_add_path(run->fd, o->to.family);
#endif
	if (o->bound &&
	    setsockopt(run->fd, SOL_SOCKET, SO_BINDTODEVICE, o->device, (socklen_t)strlen(o->device)) != 0) {
		rc = -errno;
		return ktrxer_fail(err, rc, "the socket cannot be bound to device '%s': %m", o->device);
	}
	open_nic(run);
	if (o->from.family) {
		length = ktrxer_name_make(&name, &o->from, 0);
		if (bind(run->fd, &name.sa, length) != 0) {
			rc = -errno;
			return ktrxer_fail(err, rc, "the source address cannot be used: %m");
		}
	}
	length = ktrxer_name_make(&name, &o->to, o->port);
	if (connect(run->fd, &name.sa, length) != 0) {
		rc = -errno;
		return ktrxer_fail(err, rc, "no route for probes: %m");
	}
	return 0;
}

static void on_sched(void *context, uint32_t key, int64_t real_ns, uint32_t device, const struct ktrxer_addr *from)
{
	struct run *run = context;

	if (key != run->trip.key)
		return;
	if (run->counts && !run->trip.sched_ns)
		path_witness_left(run->o->witness, device, from, 1);
	run->trip.sched_ns = real_ns;
}

static void on_stamp(void *context, uint32_t key, int64_t real_ns, enum ktx_departure_source source, bool nic_clock)
{
	struct trip *trip = &((struct run *)context)->trip;

	(void)source;
	if (key != trip->key)
		return;
	if (nic_clock)
		trip->nic_sent_raw_ns = real_ns;
	else
		trip->driver_ns = real_ns;
}

/* The driver's stamp of an earlier answer. */
static void follow_up(struct run *run, const struct stamp_tlv *tlv, bool ptp)
{
	const struct stamp_follow_up f = stamp_follow_up_read(tlv->value);
	int64_t left_ns;

	for (int i = 0; f.time && i < ANSWERS; i++)
		if (run->answers[i].t3_ns && run->answers[i].seq == f.seq) {
			if (stamp_time_to_ns(&left_ns, f.time, ptp, run->answers[i].t3_ns))
				host_times_record(run->t, FAR_USER_DRIVER, run->answers[i].t3_ns, left_ns,
						  run->o->timeout_ns);
			run->answers[i].t3_ns = 0;
			run->t->follow_up = true;
		}
}

static void read_tlvs(struct run *run, uint32_t length, bool ptp)
{
	uint32_t at = STAMP_OPEN_LENGTH;
	struct stamp_tlv tlv;

	while (stamp_tlv_next(&tlv, run->packet, length, &at) == STAMP_TLV_OK)
		if (tlv.type == STAMP_TLV_FOLLOW_UP && !tlv.flags && stamp_tlv_length_ok(tlv.type, tlv.length))
			follow_up(run, &tlv, ptp);
}

static void read_answer(struct run *run, uint32_t length, const struct ktrxer_message *m, int64_t returned_ns)
{
	struct trip *trip = &run->trip;
	struct stamp_reply r;
	bool ptp;

	if (length > HOST_PAYLOAD_MOST || !stamp_reply_read(&r, run->packet, length, false) || trip->answered ||
	    r.sender_seq != trip->number || r.sender_time != trip->time) {
		run->t->foreign++;
		return;
	}
	ptp = stamp_error_read(r.error).ptp;
	if (!stamp_time_to_ns(&trip->t2_ns, r.received, ptp, returned_ns) ||
	    !stamp_time_to_ns(&trip->t3_ns, r.time, ptp, returned_ns))
		trip->t2_ns = trip->t3_ns = 0;
	trip->answered = true;
	trip->received_ns = m->real_ns;
	trip->nic_received_raw_ns = m->nic_ns;
	trip->returned_ns = returned_ns;
	read_tlvs(run, length, ptp);
	if (run->counts) {
		path_witness_arrived(run->o->witness, m->ifindex);
		run->answers[r.seq % ANSWERS].seq = r.seq;
		run->answers[r.seq % ANSWERS].t3_ns = trip->t3_ns;
	}
}

/* Takes all that waits in both queues of the socket. Negative errno: the port is closed, or the device is gone. */
static int take(struct run *run)
{
	const struct ktx_completions completions = { .stamp = on_stamp, .sched = on_sched, .context = run };

	for (;;) {
		_Alignas(struct cmsghdr) char control[KTRXER_MESSAGE_CONTROL];
		struct iovec vector = { .iov_base = run->packet, .iov_len = sizeof run->packet };
		struct msghdr header = {
			.msg_iov = &vector, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control
		};
		const ssize_t n = recvmsg(run->fd, &header, MSG_DONTWAIT);
		const int64_t returned_ns = ktrxer_real_now_ns();
		struct ktrxer_message m;

		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return -errno;
		if (n < 0)
			break;
		ktrxer_message_read(&m, &header);
		read_answer(run, (uint32_t)n, &m, returned_ns);
	}
	ktrxer_txstamp_reap(run->fd, &completions);
	return 0;
}

static int send_probe(struct run *run, uint32_t number)
{
	struct trip *trip = &run->trip;
	struct stamp_probe probe = { .seq = number, .ssid = run->ssid };
	uint32_t at = STAMP_OPEN_LENGTH;

	*trip = (struct trip){ .number = number, .key = trip->key + 1 };
	memset(run->packet, 0, run->length);
	at += stamp_tlv_write(run->packet + at, STAMP_TLV_FOLLOW_UP, 16);
	if (run->length > at)
		stamp_tlv_write(run->packet + at, STAMP_TLV_PADDING, (uint16_t)(run->length - at - STAMP_TLV_HEAD));
	probe.error = stamp_error_write(&(struct stamp_error){ .bound_ns = KTRXER_NS_PER_S });
	trip->user_ns = ktrxer_real_now_ns();
	probe.time = trip->time = stamp_time_of_ns(trip->user_ns, false);
	stamp_probe_write(run->packet, &probe, false);
	trip->user_ns = ktrxer_real_now_ns();
	if (send(run->fd, run->packet, run->length, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
		return 0;
	return -errno;
}

/* The NIC's stamps are on this host's clock within nic_bound_ns; a stamp that is far from the kernel's is not used. */
static int64_t of_nic(struct run *run, int64_t raw_ns, int64_t near_real_ns)
{
	const uint64_t near_ns = ktrxer_clock_map_mono(&run->clock, near_real_ns);
	uint64_t mono_ns;
	uint32_t bound_ns;

	if (!raw_ns || !near_real_ns || run->phc.fd < 0 ||
	    !ktrxer_phc_stamp(&run->phc, &run->clock, raw_ns, near_ns - NEAR_NS, near_ns + NEAR_NS, &mono_ns,
			      &bound_ns))
		return 0;
	if (bound_ns > run->t->nic_bound_ns)
		run->t->nic_bound_ns = bound_ns;
	return near_real_ns + (int64_t)(mono_ns - near_ns);
}

static void record(struct run *run)
{
	const struct trip *trip = &run->trip;
	const uint64_t most = run->o->timeout_ns;
	struct host_times *t = run->t;

	if (trip->nic_sent_raw_ns || trip->nic_received_raw_ns)
		ktrxer_clock_map_refresh(&run->clock, ktrxer_now_ns(), KTRXER_NS_PER_MS);
	t->sent++;
	t->answered += trip->answered;
	t->lost += !trip->answered;
	host_times_record(t, HOST_USER_SCHED, trip->user_ns, trip->sched_ns, most);
	host_times_record(t, HOST_SCHED_DRIVER, trip->sched_ns, trip->driver_ns, most);
	host_times_record(t, HOST_DRIVER_NIC, trip->driver_ns, of_nic(run, trip->nic_sent_raw_ns, trip->driver_ns),
			  most);
	host_times_record(t, HOST_NIC_KERNEL, of_nic(run, trip->nic_received_raw_ns, trip->received_ns),
			  trip->received_ns, most);
	host_times_record(t, HOST_KERNEL_USER, trip->received_ns, trip->returned_ns, most);
	host_times_record(t, FAR_KERNEL_USER, trip->t2_ns, trip->t3_ns, most);
}

/* Until `until_ns`, or an event. True: stop. */
static bool await(const struct run *run, bool socket, uint64_t until_ns)
{
	struct pollfd fds[2] = { { .fd = run->o->stop_fd, .events = POLLIN },
				 { .fd = socket ? run->fd : -1, .events = POLLIN } };
	const uint64_t now_ns = ktrxer_now_ns();
	struct timespec span = ktrxer_span(until_ns > now_ns ? until_ns - now_ns : 0);

	return ppoll(fds, 2, &span, NULL) > 0 && fds[0].revents;
}

static bool complete(const struct run *run)
{
	const struct trip *trip = &run->trip;

	return trip->answered && (!run->t->nic_sent || trip->nic_sent_raw_ns);
}

/* One probe: 0, 1 when stopped, or a negative errno. */
static int one(struct run *run, uint32_t number, struct ktrxer_error *err)
{
	const uint64_t begin_ns = ktrxer_now_ns();
	uint64_t until_ns = begin_ns + run->o->timeout_ns;
	bool answered = false;
	char word[80];
	int rc = send_probe(run, number);

	if (rc == -ENOBUFS || rc == -EAGAIN || rc == -EPERM) {
		/* The kernel may have numbered the datagram or not: begin the numbers anew. */
		ktrxer_txstamp_restart(run->fd);
		run->trip.key = UINT32_MAX;
		run->t->failed += run->counts;
		return 0;
	}
	while (rc == 0 && !complete(run) && ktrxer_now_ns() < until_ns) {
		if (await(run, true, until_ns))
			return 1;
		rc = take(run);
		if (run->trip.answered && !answered) {
			answered = true;
			until_ns = ktrxer_now_ns() + NIC_WAIT_NS;
		}
	}
	if (rc == -ECONNREFUSED)
		return ktrxer_fail(err, rc,
				   "nothing listens on UDP port %u of the far host: start `ktrxer serve` there, or "
				   "another STAMP reflector",
				   run->o->port);
	if (rc < 0)
		return ktrxer_fail(err, rc, "probes can no longer be sent or received: %s",
				   ktrxer_strerror(rc, word, sizeof word));
	if (run->counts)
		record(run);
	return 0;
}

static int all(struct run *run, struct ktrxer_error *err)
{
	const uint64_t probes = run->o->count + HOST_WARM_UP;
	uint64_t next_ns = ktrxer_now_ns();

	for (uint64_t i = 0; i < probes; i++) {
		int rc = await(run, false, next_ns);

		run->counts = i >= HOST_WARM_UP;
		if (!rc)
			rc = one(run, (uint32_t)i, err);
		if (rc < 0)
			return rc;
		if (rc) {
			run->t->stopped = true;
			return 0;
		}
		next_ns += run->o->interval_ns;
		if (next_ns < ktrxer_now_ns())
			next_ns = ktrxer_now_ns();
	}
	return 0;
}

int host_times_run(struct host_times *t, const struct host_times_options *o, struct ktrxer_error *err)
{
	struct run *run = calloc(1, sizeof *run);
	int rc = run ? 0 : -ENOMEM;

	*t = (struct host_times){ 0 };
	for (int i = 0; i < HOST_LAYERS && rc == 0; i++)
		rc = (t->layers[i] = ktrxer_hist_new()) ? 0 : -ENOMEM;
	if (rc < 0) {
		free(run);
		return ktrxer_fail(err, rc, "no memory for the times of %d layers", HOST_LAYERS);
	}
	run->o = o;
	run->t = t;
	run->fd = run->phc.fd = -1;
	run->trip.key = UINT32_MAX;
	run->length = o->payload > HOST_PAYLOAD_LEAST ? o->payload : HOST_PAYLOAD_LEAST;
	if (run->length > HOST_PAYLOAD_LEAST && run->length < HOST_PAYLOAD_LEAST + STAMP_TLV_HEAD)
		run->length = HOST_PAYLOAD_LEAST + STAMP_TLV_HEAD;
	ktrxer_clock_map_init(&run->clock);
	if (getrandom(&run->ssid, sizeof run->ssid, 0) != sizeof run->ssid)
		rc = ktrxer_fail(err, -EIO, "no random numbers from the kernel");
	run->ssid |= 1; /* 0 is no SSID */
	if (rc == 0)
		rc = open_socket(run, err);
	if (rc == 0)
		rc = all(run, err);
	if (run->phc.fd >= 0)
		ktrxer_phc_close(&run->phc);
	if (run->fd >= 0)
		close(run->fd);
	free(run);
	return rc;
}

void host_times_free(struct host_times *t)
{
	for (int i = 0; i < HOST_LAYERS; i++)
		ktrxer_hist_free(t->layers[i]);
	*t = (struct host_times){ 0 };
}
