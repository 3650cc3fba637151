/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "syscall_filter.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/sockios.h>
#include <sched.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__i386__)
#define ARCH AUDIT_ARCH_I386
#elif defined(__aarch64__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define ARCH AUDIT_ARCH_AARCH64
#elif defined(__arm__) && defined(__ARM_EABI__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define ARCH AUDIT_ARCH_ARM
#elif defined(__mips__) && _MIPS_SIM == _ABIO32
#define ARCH (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? AUDIT_ARCH_MIPSEL : AUDIT_ARCH_MIPS)
#elif defined(__riscv) && __riscv_xlen == 64
#define ARCH AUDIT_ARCH_RISCV64
#endif

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#undef ARCH
#endif
#endif
/* The small static program has no room for the tables. */
#if defined(KTRXER_SMALL) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#undef ARCH
#endif

#ifdef SYS_clock_gettime32 /* musl's names on 32-bit systems */
#define SYS_clock_gettime SYS_clock_gettime32
#define SYS_clock_nanosleep SYS_clock_nanosleep_time32
#define SYS_gettimeofday SYS_gettimeofday_time32
#endif

#ifdef ARCH
/*
 * Frequent calls come first: older kernels search the list at each call. 32-bit systems have more numbers for calls
 * with times.
 */
/* clang-format off */
static const uint16_t allowed[] = {
	SYS_sendto, SYS_recvfrom, SYS_sendmsg, SYS_sendmmsg, SYS_recvmsg, SYS_recvmmsg, SYS_ppoll, SYS_epoll_pwait,
	SYS_epoll_ctl,
#ifdef SYS_recvmmsg_time64
	SYS_recvmmsg_time64, SYS_ppoll_time64, SYS_clock_gettime64, SYS_futex_time64, SYS_clock_nanosleep_time64,
	SYS_clock_adjtime64,
#endif
#ifdef SYS_epoll_wait
	SYS_epoll_wait,
#endif
#ifdef SYS_poll
	SYS_poll,
#endif
#ifdef SYS_send
	SYS_send, SYS_recv,
#endif
	SYS_write, SYS_writev, SYS_read, SYS_readv, SYS_getsockopt, SYS_setsockopt, SYS_futex, SYS_clock_gettime,
	SYS_accept4, SYS_close, SYS_bind, SYS_connect, SYS_getsockname, SYS_getpeername, SYS_shutdown,
	SYS_epoll_create1, SYS_eventfd2, SYS_getrandom,
	SYS_munmap, SYS_mremap, SYS_madvise, SYS_brk,
	SYS_nanosleep, SYS_clock_nanosleep, SYS_restart_syscall, SYS_sched_yield, SYS_gettimeofday, SYS_clock_adjtime,
	SYS_adjtimex,
	SYS_rt_sigreturn, SYS_rt_sigprocmask, SYS_rt_sigaction, SYS_getpid, SYS_gettid, SYS_exit, SYS_exit_group,
	SYS_uname, SYS_fstat, SYS_lseek,
	SYS_set_robust_list, /* of a thread whose first instructions are still to come */
#ifdef SYS_rseq
	SYS_rseq,
#endif
#ifdef SYS_sigreturn
	SYS_sigreturn,
#endif
#ifdef SYS_newfstatat
	SYS_newfstatat,
#endif
#ifdef SYS_fstat64
	SYS_fstat64, SYS_fstatat64, SYS__llseek,
#endif
#ifdef SYS_statx
	SYS_statx,
#endif
};
/* clang-format on */

/* Allowed if (argument & mask) == value, of several rows for a call by one of them. */
static const struct check {
	uint16_t call;
	uint8_t argument;
	uint32_t mask, value;
} checks[] = {
	{ SYS_socket, 0, UINT32_MAX, AF_INET },
	{ SYS_socket, 0, UINT32_MAX, AF_INET6 },
	{ SYS_socket, 0, UINT32_MAX, AF_NETLINK }, /* routes of UDP flows */
#ifdef SYS_mmap2
	{ SYS_mmap2, 2, PROT_EXEC, 0 },
#else
	{ SYS_mmap, 2, PROT_EXEC, 0 },
#endif
	{ SYS_mprotect, 2, PROT_EXEC, 0 },
	{ SYS_openat, 2, O_ACCMODE | O_CREAT | O_TRUNC, O_RDONLY },
#ifdef SYS_open /* musl */
	{ SYS_open, 1, O_ACCMODE | O_CREAT | O_TRUNC, O_RDONLY },
#endif
	{ SYS_fcntl, 1, UINT32_MAX, F_SETFD },
	{ SYS_fcntl, 1, UINT32_MAX, F_GETFL },
#ifdef SYS_fcntl64
	{ SYS_fcntl64, 1, UINT32_MAX, F_SETFD },
	{ SYS_fcntl64, 1, UINT32_MAX, F_GETFL },
#endif
	{ SYS_ioctl, 1, UINT32_MAX, SIOCOUTQ },
	{ SYS_ioctl, 1, UINT32_MAX, SIOCETHTOOL }, /* without privileges: reads */
	{ SYS_ioctl, 1, UINT32_MAX, TCGETS },      /* isatty() */
	{ SYS_ioctl, 1, UINT32_MAX, TIOCGWINSZ },
	{ SYS_sched_setscheduler, 1, UINT32_MAX, SCHED_OTHER },
	{ SYS_prctl, 0, UINT32_MAX, PR_SET_TIMERSLACK },
};

enum {
	CALLS = sizeof allowed / sizeof *allowed,
	CHECKS = sizeof checks / sizeof *checks,
	PROGRAM = 5 + 2 * CALLS + 6 * CHECKS,
	/* The kernel looks at 32 bits of these arguments: the lower half of the register. */
	LOW = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? 4 : 0,
};

static void put(struct sock_filter **at, uint16_t code, uint32_t k, uint8_t yes, uint8_t no)
{
	*(*at)++ = (struct sock_filter){ .code = code, .jt = yes, .jf = no, .k = k };
}

static void load(struct sock_filter **at, size_t offset)
{
	put(at, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

static void program_make(struct sock_filter **at)
{
	load(at, offsetof(struct seccomp_data, arch));
	put(at, BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0);
	put(at, BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM, 0, 0);
	load(at, offsetof(struct seccomp_data, nr));
	for (int i = 0; i < CALLS; i++) {
		put(at, BPF_JMP | BPF_JEQ | BPF_K, allowed[i], 0, 1);
		put(at, BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
	}
	for (int i = 0; i < CHECKS; i++) {
		load(at, offsetof(struct seccomp_data, nr));
		put(at, BPF_JMP | BPF_JEQ | BPF_K, checks[i].call, 0, 4);
		load(at, offsetof(struct seccomp_data, args) + checks[i].argument * sizeof(uint64_t) + LOW);
		put(at, BPF_ALU | BPF_AND | BPF_K, checks[i].mask, 0, 0);
		put(at, BPF_JMP | BPF_JEQ | BPF_K, checks[i].value, 0, 1);
		put(at, BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
	}
	put(at, BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM, 0, 0);
}

int syscall_filter_install(void)
{
	struct sock_filter instructions[PROGRAM], *end = instructions;
	struct sock_fprog program = { .filter = instructions };

	program_make(&end);
	program.len = (unsigned short)(end - instructions);
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0 ? 0 : -ENOSYS;
}
#else
int syscall_filter_install(void)
{
	return -ENOSYS;
}
#endif
