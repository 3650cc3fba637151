/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * Templates in the kernel. BPF_PROG_RUN with live frames runs the program over and over; each run writes the next probe
 * of the template into the frame that it is given and redirects it to the device. There is no slot, no word and no
 * stamp for each probe: only counts, made by the tracepoint behind the driver's transmit function. Probes that the
 * driver refuses are remembered by their numbers and sent again first.
 *
 * The whole frame is written each time. The kernel gives the same pages again, but a receiver on the same machine
 * (veth) may have changed what is in them.
 */
#include "stream.h"
#include "live_head.h"

#include <bpf/bpf_endian.h>

/* Set before loading. Alone in its section, so that the library finds it at the start. */
const volatile struct stream_config config = { .plan.length = 64 };

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct stream_worker));
} worker SEC(".maps");

/* The first worker's are every worker's. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct stream_share));
} share SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* as loaded: more */
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u64));
} words SEC(".maps");

static __always_inline struct stream_worker *worker_get(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&worker, &zero);
}

/*
 * The empty asm keeps the compiler from using the values that these constants have before loading. A volatile object
 * would be read again at each use. The verifier reads the values after loading, and removes the branches that are not
 * taken.
 */
static __always_inline const struct stream_config *config_get(void)
{
	const struct stream_config *c = (const struct stream_config *)&config;

	asm volatile("" : "+r"(c));
	return c;
}

static __noinline int chunk_take(void)
{
	const struct stream_config *c = config_get();
	struct stream_worker *l = worker_get();
	struct stream_share *s;
	__u32 zero = 0;
	__u64 from;

	s = bpf_map_lookup_elem(&share, &zero);
	if (!s || !l || READ(s->stop) || READ(s->taken) >= s->count)
		return 0;
	from = __sync_fetch_and_add(&s->taken, STREAM_CHUNK);
	if (from >= s->count)
		return 0;
	l->next = from;
	l->chunk_end = s->count - from < STREAM_CHUNK ? s->count : from + STREAM_CHUNK;
#pragma unroll
	for (__u32 i = 0; i < VARY_PARTS; i++) {
		const struct vary_part *part = &c->plan.part[i];

		if (i >= c->plan.parts)
			break;
		l->place[i] = vary_place(part, c->first + from);
		l->rest[i] = part->every > 1 ? (c->first + from) % part->every : 0;
	}
	return 1;
}

static __always_inline void value_store(void *at, __u8 width, __u64 value)
{
	if (width == 1)
		*(__u8 *)at = (__u8)value;
	else if (width == 2)
		*(__u16 *)at = bpf_htons((__u16)value);
	else if (width == 4)
		*(__u32 *)at = bpf_htonl((__u32)value);
	else
		*(__u64 *)at = bpf_cpu_to_be64(value);
}

static __always_inline __u64 value_of(const struct vary_part *part, __u64 place)
{
	__u64 *word;
	__u32 at;

	if (part->how == VARY_LOOKED_UP) {
		at = part->table + (__u32)place;
		word = bpf_map_lookup_elem(&words, &at);
		return word ? *word : 0;
	}
	if (part->how == VARY_PERMUTED)
		place = vary_permute(part, place);
	return part->from + part->step * place;
}

static __always_inline void place_step(struct stream_worker *l, const struct vary_part *part, __u32 i)
{
	if (part->every > 1) {
		if (++l->rest[i] < part->every)
			return;
		l->rest[i] = 0;
	}
	l->place[i]++;
	if (part->count && l->place[i] == part->count)
		l->place[i] = 0;
}

/* The frame but for its parts and checksums. 0: it does not fit, which cannot be. */
static __always_inline int bytes_write(struct xdp_md *ctx, const struct stream_config *c)
{
	const __u32 length = c->plan.length;
	const __u64 *from = (const __u64 *)c->frame;
	void *data, *end;

	if (length > STREAM_HEAD &&
	    bpf_xdp_store_bytes(ctx, STREAM_HEAD, (void *)&c->frame[STREAM_HEAD], length - STREAM_HEAD))
		return 0;
	data = (void *)(long)ctx->data;
	end = (void *)(long)ctx->data_end;
	if (data + length > end)
		return 0;
#pragma unroll
	for (__u32 i = 0; i < STREAM_HEAD / 8; i++)
		if (i * 8 + 8 <= length)
			((__u64 *)data)[i] = from[i];
	if (length < STREAM_HEAD) {
		if (length & 4)
			*(__u32 *)(data + (length & ~7u)) = *(const __u32 *)&c->frame[length & ~7u];
		if (length & 2)
			*(__u16 *)(data + (length & ~3u)) = *(const __u16 *)&c->frame[length & ~3u];
		if (length & 1)
			*(__u8 *)(data + (length & ~1u)) = c->frame[length & ~1u];
	}
	return 1;
}

SEC("xdp")
int stream_next(struct xdp_md *ctx)
{
	const struct stream_config *c = config_get();
	const __u32 length = c->plan.length;
	struct stream_worker *l = worker_get();
	__u64 at, ip = c->plan.ip_sum, transport = c->plan.transport_sum;
	void *data, *end;
	_Bool again = 0;

	if (!l)
		return XDP_ABORTED;
	if (!l->left) {
		/*
		 * A batch begins. Nothing is pending between two, unless a tracepoint was not run: their end is not
		 * known.
		 */
		l->left = STREAM_BATCH;
		l->cpu = bpf_get_smp_processor_id();
		if (l->completed != l->submitted) {
			l->sent += l->submitted - l->completed;
			l->unstamped += l->submitted - l->completed;
			l->completed = l->submitted;
		}
	}
	l->left--;
	if (l->again_out != l->again_in) {
		at = l->again[l->again_out++ & (STREAM_PENDING - 1)];
		again = 1;
	} else {
		if (l->next == l->chunk_end && !chunk_take())
			return XDP_DROP;
		at = l->next++;
	}
	if (!bytes_write(ctx, c))
		return XDP_ABORTED;
	data = (void *)(long)ctx->data;
	end = (void *)(long)ctx->data_end;
	if (data + length > end)
		return XDP_ABORTED;
#pragma unroll
	for (__u32 i = 0; i < VARY_PARTS; i++) {
		const struct vary_part *part = &c->plan.part[i];
		__u64 value;

		if (i >= c->plan.parts)
			break;
		if (again) {
			value = value_of(part, vary_place(part, c->first + at));
		} else {
			value = value_of(part, l->place[i]);
			place_step(l, part, i);
		}
		value_store(data + part->at, part->width, value);
		if (part->in_ip)
			ip += vary_sum_of(value, part->in_ip);
		if (part->in_transport)
			transport += vary_sum_of(value, part->in_transport);
	}
	if (c->plan.ip_sum_at)
		*(__u16 *)(data + c->plan.ip_sum_at) = bpf_htons(vary_checksum(ip, 0));
	if (c->plan.transport_sum_at)
		*(__u16 *)(data + c->plan.transport_sum_at) = bpf_htons(vary_checksum(transport, c->plan.udp));
	if (bpf_redirect_map(&device, 0, 0) != XDP_REDIRECT) { /* the map lets go of a device that is gone */
		l->failed++;
		l->error = NO_DEVICE;
		return XDP_DROP;
	}
	if (c->traced)
		l->pending[l->submitted & (STREAM_PENDING - 1)] = at;
	l->submitted++;
	return XDP_REDIRECT;
}

/*
 * NULL: it is not about pending requests. Softirqs are off from redirect to flush, so no other call comes between.
 */
static __always_inline struct stream_worker *flight_here(void)
{
	struct stream_worker *l = worker_get();

	return l && l->completed != l->submitted && l->cpu == bpf_get_smp_processor_id() ? l : (void *)0;
}

static __always_inline void failed(struct stream_worker *l, int error)
{
	l->failed++;
	l->error = error;
}

static __always_inline void refused(struct stream_worker *l, __u32 drops, int error, __u64 now)
{
	_Bool retry;

	if (!error)
		error = NO_BUFFERS; /* its ring is full */
	l->refusals += drops;
	retry = may_try_again(error);
	if (!l->refused_since_ns)
		l->refused_since_ns = now;
	if (retry && now - l->refused_since_ns >= config_get()->retry_ns)
		retry = 0;
	for (__u32 i = 0; i < LIVE_BULK; i++) {
		if (i >= drops)
			break;
		if (retry)
			l->again[l->again_in++ & (STREAM_PENDING - 1)] =
				l->pending[l->completed & (STREAM_PENDING - 1)];
		else
			failed(l, error);
		l->completed++;
	}
	if (!retry)
		l->refused_since_ns = 0; /* a final refusal ends the time of retries */
}

/* (from, to, sent, drops, err): the driver's transmit function has returned. It took those in front. */
SEC("raw_tp/xdp_devmap_xmit")
int stream_taken(struct bpf_raw_tracepoint_args *ctx)
{
	const int sent = (int)ctx->args[2], drops = (int)ctx->args[3], error = (int)ctx->args[4];
	struct stream_worker *l = flight_here();
	__u32 pending;
	__u64 now;

	if (!l)
		return 0;
	now = bpf_ktime_get_ns();
	pending = l->submitted - l->completed;
	if (sent > 0) {
		__u32 count = (__u32)sent < pending ? (__u32)sent : pending;

		l->sent += count;
		l->completed += count;
		pending -= count;
		if (!l->first_ns)
			l->first_ns = now;
		l->last_ns = now;
		l->refused_since_ns = 0;
	}
	if (drops > 0)
		refused(l, (__u32)drops < pending ? (__u32)drops : pending, error < 0 ? -error : 0, now);
	return 0;
}

/*
 * (dev, program, target, err, ...): a frame did not get as far as the driver: the device is down, the frame too long
 * for it.
 */
SEC("raw_tp/xdp_redirect_err")
int stream_turned_back(struct bpf_raw_tracepoint_args *ctx)
{
	const int error = (int)ctx->args[3];
	struct stream_worker *l = flight_here();

	if (!l)
		return 0;
	l->submitted--;
	failed(l, error < 0 ? -error : INVALID);
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
