/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The system calls that a server needs while it runs. docs/explanation/security.md lists what is refused.
 */
#ifndef KTRXER_METHODS_SYSCALL_FILTER_H
#define KTRXER_METHODS_SYSCALL_FILTER_H

#include <ktrxer.h>

/*
 * Makes system calls outside of the list fail with EPERM in all threads: programs are not started, files are not
 * written, memory does not become executable, sockets are those of IP and netlink. Call it when all threads run and
 * after no_new_privs. -ENOSYS, and nothing is changed: this kernel or this architecture has no such filter, the program
 * is small (meson option `small`), or it is built with a sanitizer, whose reports need other calls (fork, ptrace).
 */
int syscall_filter_install(void);

#endif
