// SPDX-License-Identifier: GPL-2.0
/*
 * The clocks of hosts that are network namespaces. The clock of a host differs from the kernel's by an offset and a
 * rate. /proc/net/host_clock of the namespace, clock_settime(2), settimeofday(2), clock_adjtime(2) and adjtimex(2)
 * there set them. The first namespace has the kernel's clock.
 *
 * Times that a process reads, time stamps of packets, and the absolute times for which a process waits are of the
 * host's clock. Relative times of waits, timers of protocols and delays of queues are of the kernel's. The rate of the
 * oscillator is of all clocks; corrections of the rate are of all but CLOCK_MONOTONIC_RAW; a step is of CLOCK_REALTIME
 * and CLOCK_TAI. A wait for a time of CLOCK_REALTIME is not changed by a later step.
 */

#include <linux/capability.h>
#include <linux/host_clock.h>
#include <linux/hrtimer.h>
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
#define ADJUST_MAX_US 500LL /* in each second, as of adjtime(3) */
#define STEP_MAX_NS (10LL * 366 * 86400 * NSEC_PER_SEC)

/* Two settings, so that a stamp that is read after a change is of the clock at its own time. */
struct drift {
	ktime_t since; /* when the rate was set, of the kernel's CLOCK_MONOTONIC */
	s64 ahead_ns; /* by how much the host's clock was ahead then */
	s64 rate_ppb, rate_before_ppb;
};

struct host_clock {
	spinlock_t lock;
	struct drift raw, corrected; /* CLOCK_MONOTONIC_RAW and CLOCK_MONOTONIC */
	s64 oscillator_ppb, slew_ppb; /* of /proc/net/host_clock */
	ktime_t stepped; /* when the last step was */
	s64 step_ns, step_before_ns; /* of all steps together */

	/* Of adjtimex(2), as in kernel/time/ntp.c. */
	s64 freq; /* ns/s << NTP_SCALE_SHIFT */
	s64 offset_ns; /* what the phase-locked loop still has to correct */
	s64 adjust_us; /* what adjtime(3) still has to correct */
	s64 offset_part_ns, adjust_part_us; /* what is corrected of both in the current second */
	s64 offset_set_s; /* when the offset was set */
	long constant, tick_us, maxerror, esterror;
	int status;
	struct hrtimer second; /* runs while there is an offset or an adjustment */
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

static s64 ahead(const struct drift *of, ktime_t mono)
{
	s64 rate = mono < of->since ? of->rate_before_ppb : of->rate_ppb;
	s32 rest;
	s64 seconds = div_s64_rem(mono - of->since, NSEC_PER_SEC, &rest);

	return of->ahead_ns + seconds * rate + div_s64(rest * rate, NSEC_PER_SEC);
}

static void set_rate(struct drift *of, ktime_t now, s64 rate_ppb)
{
	if (rate_ppb == of->rate_ppb)
		return;
	of->ahead_ns = ahead(of, now);
	of->since = now;
	of->rate_before_ppb = of->rate_ppb;
	of->rate_ppb = rate_ppb;
}

static void set_rates(struct host_clock *of)
{
	ktime_t now = ktime_get();
	s64 tick_ppb = (of->tick_us - (s64)USER_TICK_USEC) * USER_HZ * NSEC_PER_USEC;
	s64 parts_ppb = of->offset_part_ns + of->adjust_part_us * NSEC_PER_USEC;

	set_rate(&of->raw, now, of->oscillator_ppb);
	set_rate(&of->corrected, now, of->oscillator_ppb + of->slew_ppb + tick_ppb +
		 shift_right(of->freq, NTP_SCALE_SHIFT) + parts_ppb);
}

/* The correction of the next second. Returns whether there is anything to correct. */
static bool take_parts(struct host_clock *of)
{
	of->offset_part_ns = shift_right(of->offset_ns, SHIFT_PLL + of->constant);
	if (!of->offset_part_ns)
		of->offset_part_ns = of->offset_ns;
	of->offset_ns -= of->offset_part_ns;
	of->adjust_part_us = clamp_t(s64, of->adjust_us, -ADJUST_MAX_US, ADJUST_MAX_US);
	of->adjust_us -= of->adjust_part_us;
	set_rates(of);
	return of->offset_part_ns || of->adjust_part_us;
}

static enum hrtimer_restart next_second(struct hrtimer *timer)
{
	struct host_clock *of = container_of(timer, struct host_clock, second);
	bool more;

	spin_lock(&of->lock);
	more = take_parts(of);
	spin_unlock(&of->lock);
	if (!more)
		return HRTIMER_NORESTART;
	hrtimer_forward_now(timer, NSEC_PER_SEC);
	return HRTIMER_RESTART;
}

static s64 difference(struct host_clock *of, clockid_t clock, ktime_t time)
{
	ktime_t mono = monotonic(clock, time);
	s64 found;

	spin_lock_bh(&of->lock);
	found = ahead(clock == CLOCK_MONOTONIC_RAW ? &of->raw : &of->corrected, mono);
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
	ktime_t found, before;
	int i = 0;

	if (net == &init_net || !time || time == KTIME_MAX)
		return time;
	of = net_generic(net, host_clock_id);
	found = time;
	do { /* each time, the error falls to the rate's part of it: a tenth at most */
		before = found;
		found = time - difference(of, clock, found);
	} while (found != before && i++ < 30);
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

static int step(struct host_clock *of, s64 step_ns)
{
	s64 all_ns = of->step_ns + step_ns;

	if (step_ns < -STEP_MAX_NS || step_ns > STEP_MAX_NS || all_ns < -STEP_MAX_NS || all_ns > STEP_MAX_NS)
		return -EINVAL;
	if (step_ns) {
		of->stepped = ktime_get();
		of->step_before_ns = of->step_ns;
		of->step_ns = all_ns;
	}
	return 0;
}

int host_clock_settimeofday(const struct timespec64 *time)
{
	struct net *net = own_net();
	struct host_clock *of;
	ktime_t now;
	int err;

	if (net == &init_net)
		return do_settimeofday64(time);
	of = net_generic(net, host_clock_id);
	now = host_clock_shown(net, CLOCK_REALTIME, ktime_get_real());
	spin_lock_bh(&of->lock);
	err = step(of, timespec64_to_ktime(*time) - now);
	if (!err) { /* ends what the clock is corrected by, as in ntp_clear() */
		of->offset_ns = of->adjust_us = of->offset_part_ns = of->adjust_part_us = 0;
		set_rates(of);
	}
	spin_unlock_bh(&of->lock);
	return err;
}

/* Sets the phase to correct, and the frequency by the time since the last offset, as ntp_update_offset() does. */
static void set_offset(struct host_clock *of, s64 offset)
{
	s64 now_s = ktime_get_seconds(), seconds = of->status & STA_FREQHOLD ? 0 : now_s - of->offset_set_s, freq = 0;

	if (!(of->status & STA_PLL))
		return;
	if (!(of->status & STA_NANO))
		offset = clamp_t(s64, offset, -USEC_PER_SEC, USEC_PER_SEC) * NSEC_PER_USEC;
	offset = clamp_t(s64, offset, -MAXPHASE, MAXPHASE);
	of->offset_set_s = now_s;
	of->status &= ~STA_MODE;
	if (seconds >= MINSEC && (of->status & STA_FLL || seconds > MAXSEC)) {
		of->status |= STA_MODE;
		freq = div64_s64(offset << (NTP_SCALE_SHIFT - SHIFT_FLL), seconds);
	}
	seconds = min_t(s64, seconds, 1 << (SHIFT_PLL + 1 + of->constant));
	freq += (offset * seconds) << (NTP_SCALE_SHIFT - 2 * (SHIFT_PLL + 2 + of->constant));
	of->freq = clamp_t(s64, of->freq + freq, -MAXFREQ_SCALED, MAXFREQ_SCALED);
	of->offset_ns = offset;
}

/* Corrections begin at once, in a kernel with its next second. */
static void begin_parts(struct host_clock *of)
{
	if (of->offset_part_ns || of->adjust_part_us)
		set_rates(of); /* the timer runs */
	else if (take_parts(of))
		hrtimer_start(&of->second, NSEC_PER_SEC, HRTIMER_MODE_REL_SOFT);
}

static int set_timex(struct host_clock *of, struct __kernel_timex *txc)
{
	const unsigned int known = ADJ_SETOFFSET | ADJ_NANO | ADJ_MICRO | ADJ_FREQUENCY | ADJ_STATUS | ADJ_MAXERROR |
				   ADJ_ESTERROR | ADJ_TIMECONST | ADJ_OFFSET | ADJ_TICK;
	s64 unit = txc->modes & ADJ_NANO ? 1 : NSEC_PER_USEC;
	int err;

	if (txc->modes & ~known)
		return -EOPNOTSUPP; /* ADJ_TAI */
	if (txc->modes & ADJ_TICK && (txc->tick < 900000 / USER_HZ || txc->tick > 1100000 / USER_HZ))
		return -EINVAL;
	if (txc->modes & ADJ_SETOFFSET) {
		if (txc->time.tv_usec < 0 || txc->time.tv_usec * unit >= NSEC_PER_SEC)
			return -EINVAL;
		if (abs(txc->time.tv_sec) > STEP_MAX_NS / NSEC_PER_SEC)
			return -EINVAL;
		err = step(of, txc->time.tv_sec * NSEC_PER_SEC + txc->time.tv_usec * unit);
		if (err)
			return err;
	}
	if (txc->modes & ADJ_STATUS)
		of->status = (of->status & STA_RONLY) | (txc->status & ~STA_RONLY);
	if (txc->modes & ADJ_NANO)
		of->status |= STA_NANO;
	if (txc->modes & ADJ_MICRO)
		of->status &= ~STA_NANO;
	if (txc->modes & ADJ_FREQUENCY) /* 2^-16 ppm */
		of->freq = clamp_t(s64, txc->freq * PPM_SCALE, -MAXFREQ_SCALED, MAXFREQ_SCALED);
	if (txc->modes & ADJ_MAXERROR)
		of->maxerror = clamp_t(s64, txc->maxerror, 0, NTP_PHASE_LIMIT);
	if (txc->modes & ADJ_ESTERROR)
		of->esterror = clamp_t(s64, txc->esterror, 0, NTP_PHASE_LIMIT);
	if (txc->modes & ADJ_TIMECONST)
		of->constant = clamp_t(s64, txc->constant + (of->status & STA_NANO ? 0 : 4), 0, MAXTC);
	if (txc->modes & ADJ_OFFSET)
		set_offset(of, txc->offset);
	if (txc->modes & ADJ_TICK)
		of->tick_us = txc->tick;
	begin_parts(of);
	return 0;
}

static void show_timex(struct net *net, const struct host_clock *of, struct __kernel_timex *txc)
{
	s64 unit = of->status & STA_NANO ? 1 : NSEC_PER_USEC;
	struct timespec64 now = ktime_to_timespec64(host_clock_shown(net, CLOCK_REALTIME, ktime_get_real()));

	txc->offset = div_s64(of->offset_ns, unit);
	txc->freq = shift_right((of->freq >> PPM_SCALE_INV_SHIFT) * PPM_SCALE_INV, NTP_SCALE_SHIFT);
	txc->maxerror = of->maxerror;
	txc->esterror = of->esterror;
	txc->status = of->status;
	txc->constant = of->constant;
	txc->precision = 1;
	txc->tolerance = MAXFREQ_SCALED / PPM_SCALE;
	txc->tick = of->tick_us;
	txc->time.tv_sec = now.tv_sec;
	txc->time.tv_usec = div_s64(now.tv_nsec, unit);
}

int host_clock_adjtimex(struct __kernel_timex *txc)
{
	struct net *net = own_net();
	struct host_clock *of;
	s64 adjust_us;
	int err = 0, status;
	bool reads;

	if (net == &init_net)
		return do_adjtimex(txc);
	reads = txc->modes & ADJ_ADJTIME ? txc->modes & ADJ_OFFSET_READONLY : !txc->modes;
	if (!reads && !capable(CAP_SYS_TIME))
		return -EPERM;
	of = net_generic(net, host_clock_id);
	spin_lock_bh(&of->lock);
	adjust_us = of->adjust_us;
	if (!(txc->modes & ADJ_ADJTIME)) {
		err = set_timex(of, txc);
	} else if (!(txc->modes & ADJ_OFFSET_SINGLESHOT)) {
		err = -EINVAL;
	} else if (!reads) { /* adjtime(3) */
		of->adjust_us = txc->offset;
		begin_parts(of);
	}
	status = of->status;
	spin_unlock_bh(&of->lock);
	if (err)
		return err;
	show_timex(net, of, txc);
	if (txc->modes & ADJ_ADJTIME)
		txc->offset = adjust_us;
	return status & (STA_UNSYNC | STA_CLOCKERR) ? TIME_ERROR : TIME_OK;
}

/* "STEP RATE": nanoseconds of all steps together, and ppb. */
static int show(struct seq_file *seq, void *unused)
{
	struct net *net = seq_file_single_net(seq);
	struct host_clock *of = net_generic(net, host_clock_id);

	seq_printf(seq, "%lld %lld\n", of->step_ns, of->corrected.rate_ppb);
	return 0;
}

/* "STEP RATE SLEW": a step in nanoseconds; the rate of the oscillator from now on, and its correction, in ppb. */
static int write(struct file *file, char *text, size_t size)
{
	struct net *net = seq_file_single_net(file->private_data);
	struct host_clock *of = net_generic(net, host_clock_id);
	long long step_ns, rate_ppb, slew_ppb;
	int err;

	if (net == &init_net)
		return -EPERM;
	if (sscanf(text, "%lld %lld %lld", &step_ns, &rate_ppb, &slew_ppb) != 3)
		return -EINVAL;
	if (abs(rate_ppb) > RATE_MAX_PPB || abs(slew_ppb) > 2 * RATE_MAX_PPB)
		return -EINVAL;
	spin_lock_bh(&of->lock);
	err = step(of, step_ns);
	if (!err) {
		of->oscillator_ppb = rate_ppb;
		of->slew_ppb = slew_ppb;
		set_rates(of);
	}
	spin_unlock_bh(&of->lock);
	return err;
}

static int __net_init host_clock_init(struct net *net)
{
	struct host_clock *of = net_generic(net, host_clock_id);

	spin_lock_init(&of->lock);
	of->tick_us = USER_TICK_USEC;
	of->constant = 2; /* as in kernel/time/ntp.c */
	hrtimer_setup(&of->second, next_second, CLOCK_MONOTONIC, HRTIMER_MODE_REL_SOFT);
	return proc_create_net_single_write("host_clock", 0644, net->proc_net, show, write, NULL) ? 0 : -ENOMEM;
}

static void __net_exit host_clock_exit(struct net *net)
{
	struct host_clock *of = net_generic(net, host_clock_id);

	remove_proc_entry("host_clock", net->proc_net);
	hrtimer_cancel(&of->second);
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
