// SPDX-License-Identifier: GPL-2.0
/*
 * The clocks of hosts that are network namespaces. The clock of a host differs from the kernel's by an offset and a
 * rate. /proc/net/host_clock of the namespace, clock_settime(2), settimeofday(2), clock_adjtime(2) and adjtimex(2)
 * there set them. The first namespace has the kernel's clock.
 *
 * Times that a process reads, time stamps of packets, and the absolute times for which a process waits are of the
 * host's clock. Relative times of waits, timers of protocols and delays of queues are of the kernel's. The rate is of
 * all clocks, CLOCK_MONOTONIC_RAW too; a step is of CLOCK_REALTIME and CLOCK_TAI. A wait for a time of CLOCK_REALTIME
 * is not changed by a later step.
 */

#include <linux/capability.h>
#include <linux/host_clock.h>
#include <linux/init.h>
#include <linux/math64.h>
#include <linux/nsproxy.h>
#include <linux/proc_fs.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/timekeeping.h>
#include <linux/timex.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>

#define RATE_MAX_PPB 500000 /* as of adjtimex(2) */
#define STEP_MAX_NS (10LL * 366 * 86400 * NSEC_PER_SEC)

/* Two settings, so that a stamp that is read after a change is of the clock at its own time. */
struct host_clock {
	spinlock_t lock;
	ktime_t since; /* when the rate was set, of the kernel's CLOCK_MONOTONIC */
	s64 ahead_ns; /* by how much the host's CLOCK_MONOTONIC was ahead then */
	s64 rate_ppb, rate_before_ppb;
	ktime_t stepped; /* when the last step was */
	s64 step_ns, step_before_ns; /* of all steps together */
	int status; /* of adjtimex(2): kept, without an effect */
};

static unsigned int host_clock_id __read_mostly;

static struct net *own_net(void)
{
	return current->nsproxy ? current->nsproxy->net_ns : &init_net;
}

static bool is_wall(clockid_t clock)
{
	return clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE || clock == CLOCK_REALTIME_ALARM ||
	       clock == CLOCK_TAI;
}

static ktime_t monotonic(clockid_t clock, ktime_t time)
{
	if (clock == CLOCK_TAI)
		return time - ktime_mono_to_any(0, TK_OFFS_TAI);
	if (clock == CLOCK_BOOTTIME || clock == CLOCK_BOOTTIME_ALARM)
		return time - ktime_mono_to_any(0, TK_OFFS_BOOT);
	return is_wall(clock) ? time - ktime_mono_to_any(0, TK_OFFS_REAL) : time;
}

static s64 ahead(const struct host_clock *of, ktime_t mono)
{
	s64 rate = mono < of->since ? of->rate_before_ppb : of->rate_ppb;
	s32 rest;
	s64 seconds = div_s64_rem(mono - of->since, NSEC_PER_SEC, &rest);

	return of->ahead_ns + seconds * rate + div_s64(rest * rate, NSEC_PER_SEC);
}

static s64 difference(struct host_clock *of, clockid_t clock, ktime_t time)
{
	ktime_t mono = monotonic(clock, time);
	s64 found;

	spin_lock_bh(&of->lock);
	found = ahead(of, mono);
	if (is_wall(clock))
		found += mono < of->stepped ? of->step_before_ns : of->step_ns;
	spin_unlock_bh(&of->lock);
	return found;
}

ktime_t host_clock_shown(struct net *net, clockid_t clock, ktime_t time)
{
	if (net == &init_net || !time)
		return time;
	return time + difference(net_generic(net, host_clock_id), clock, time);
}
EXPORT_SYMBOL_GPL(host_clock_shown);

ktime_t host_clock_true(struct net *net, clockid_t clock, ktime_t time)
{
	struct host_clock *of;
	ktime_t found;
	int i;

	if (net == &init_net || !time || time == KTIME_MAX)
		return time;
	of = net_generic(net, host_clock_id);
	found = time - difference(of, clock, time);
	for (i = 0; i < 6; i++) /* each time, the error falls to the rate's part of it: 0.0005 at most */
		found = time - difference(of, clock, found);
	for (i = 0; i < 4 && found + difference(of, clock, found) < time; i++)
		found++; /* by rounding */
	return found > 1 ? found : 1; /* a time before the kernel's start is one that is over */
}
EXPORT_SYMBOL_GPL(host_clock_true);

void host_clock_show(clockid_t clock, struct timespec64 *time)
{
	*time = ktime_to_timespec64(host_clock_shown(own_net(), clock, timespec64_to_ktime(*time)));
}

ktime_t host_clock_wanted(clockid_t clock, ktime_t time)
{
	return host_clock_true(own_net(), clock, time);
}

time64_t host_clock_seconds(void)
{
	return ktime_to_timespec64(host_clock_shown(own_net(), CLOCK_REALTIME, ktime_get_real())).tv_sec;
}

static int set_clock(struct net *net, s64 step_ns, s64 rate_ppb)
{
	struct host_clock *of = net_generic(net, host_clock_id);
	ktime_t now = ktime_get();
	int err = 0;

	if (rate_ppb < -RATE_MAX_PPB || rate_ppb > RATE_MAX_PPB || step_ns < -STEP_MAX_NS || step_ns > STEP_MAX_NS)
		return -EINVAL;
	spin_lock_bh(&of->lock);
	if (of->step_ns + step_ns < -STEP_MAX_NS || of->step_ns + step_ns > STEP_MAX_NS) {
		err = -EINVAL;
		goto unlock;
	}
	if (rate_ppb != of->rate_ppb) {
		of->ahead_ns = ahead(of, now);
		of->since = now;
		of->rate_before_ppb = of->rate_ppb;
		of->rate_ppb = rate_ppb;
	}
	if (step_ns) {
		of->stepped = now;
		of->step_before_ns = of->step_ns;
		of->step_ns += step_ns;
	}
unlock:
	spin_unlock_bh(&of->lock);
	return err;
}

static s64 rate_of(struct net *net)
{
	return ((struct host_clock *)net_generic(net, host_clock_id))->rate_ppb;
}

int host_clock_settimeofday(const struct timespec64 *time)
{
	struct net *net = own_net();
	ktime_t now;

	if (net == &init_net)
		return do_settimeofday64(time);
	now = host_clock_shown(net, CLOCK_REALTIME, ktime_get_real());
	return set_clock(net, timespec64_to_ktime(*time) - now, rate_of(net));
}

int host_clock_adjtimex(struct __kernel_timex *txc)
{
	const unsigned int known = ADJ_SETOFFSET | ADJ_NANO | ADJ_MICRO | ADJ_FREQUENCY | ADJ_STATUS | ADJ_MAXERROR |
				   ADJ_ESTERROR;
	const s64 freq_max = RATE_MAX_PPB / 1000 * 65536;
	struct net *net = own_net();
	s64 step_ns = 0, rate_ppb, unit = txc->modes & ADJ_NANO ? 1 : NSEC_PER_USEC;
	struct host_clock *of;
	struct timespec64 now;
	int err;

	if (net == &init_net)
		return do_adjtimex(txc);
	if (txc->modes & ~known)
		return -EOPNOTSUPP; /* ADJ_OFFSET, ADJ_TICK, ADJ_TAI: no phase-locked loop here */
	if (txc->modes && !capable(CAP_SYS_TIME))
		return -EPERM;
	rate_ppb = rate_of(net);
	if (txc->modes & ADJ_SETOFFSET) {
		if (txc->time.tv_usec < 0 || txc->time.tv_usec * unit >= NSEC_PER_SEC)
			return -EINVAL;
		if (abs(txc->time.tv_sec) > STEP_MAX_NS / NSEC_PER_SEC)
			return -EINVAL;
		step_ns = txc->time.tv_sec * NSEC_PER_SEC + txc->time.tv_usec * unit;
	}
	if (txc->modes & ADJ_FREQUENCY) /* 2^-16 ppm */
		rate_ppb = div_s64(clamp_t(s64, txc->freq, -freq_max, freq_max) * 1000, 65536);
	err = set_clock(net, step_ns, rate_ppb);
	if (err)
		return err;
	of = net_generic(net, host_clock_id);
	if (txc->modes & ADJ_STATUS)
		of->status = txc->status;
	now = ktime_to_timespec64(host_clock_shown(net, CLOCK_REALTIME, ktime_get_real()));
	txc->offset = 0;
	txc->freq = div_s64(rate_ppb * 65536, 1000);
	txc->status = of->status;
	txc->precision = 1;
	txc->tolerance = freq_max;
	txc->tick = USEC_PER_SEC / 100;
	txc->time.tv_sec = now.tv_sec;
	txc->time.tv_usec = now.tv_nsec / unit;
	return TIME_OK;
}

/* "STEP RATE": nanoseconds of all steps together, and ppb. */
static int show(struct seq_file *seq, void *unused)
{
	struct net *net = seq_file_single_net(seq);
	struct host_clock *of = net_generic(net, host_clock_id);

	seq_printf(seq, "%lld %lld\n", of->step_ns, of->rate_ppb);
	return 0;
}

/* "STEP RATE": steps by so many nanoseconds and goes on with this rate, in ppb. */
static int write(struct file *file, char *text, size_t size)
{
	struct net *net = seq_file_single_net(file->private_data);
	long long step_ns, rate_ppb;

	if (net == &init_net)
		return -EPERM;
	if (sscanf(text, "%lld %lld", &step_ns, &rate_ppb) != 2)
		return -EINVAL;
	return set_clock(net, step_ns, rate_ppb);
}

static int __net_init host_clock_init(struct net *net)
{
	struct host_clock *of = net_generic(net, host_clock_id);

	spin_lock_init(&of->lock);
	return proc_create_net_single_write("host_clock", 0644, net->proc_net, show, write, NULL) ? 0 : -ENOMEM;
}

static void __net_exit host_clock_exit(struct net *net)
{
	remove_proc_entry("host_clock", net->proc_net);
}

static struct pernet_operations host_clock_ops = {
	.init = host_clock_init,
	.exit = host_clock_exit,
	.id = &host_clock_id,
	.size = sizeof(struct host_clock),
};

static int __init host_clock_start(void)
{
	return register_pernet_subsys(&host_clock_ops);
}
subsys_initcall(host_clock_start);
