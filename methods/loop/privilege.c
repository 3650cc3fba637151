/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "privilege.h"

#include "error.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define UNPRIVILEGED 65534

static bool capabilities_are_gone(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	memset(data, 0xff, sizeof data);
	if (syscall(SYS_capget, &head, data) != 0)
		return false;
	return !(data[0].effective | data[0].permitted | data[1].effective | data[1].permitted);
}

int privilege_drop(struct privilege_left *left, struct ktrxer_error *err)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { 0 };

	memset(left, 0, sizeof *left);
	if (geteuid() == 0 && (setgroups(0, NULL) == 0 || errno == EPERM) &&
	    setresgid(UNPRIVILEGED, UNPRIVILEGED, UNPRIVILEGED) == 0)
		/* the C library does this for all threads */
		(void)!setresuid(UNPRIVILEGED, UNPRIVILEGED, UNPRIVILEGED);
	(void)!prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	syscall(SYS_capset, &head, none);
	left->no_new_privs = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
	left->no_capabilities = capabilities_are_gone();
	left->uid = geteuid();
	if (!left->no_capabilities)
		return ktrxer_fail(err, -EPERM,
				   "privileges could not be dropped: the kernel keeps capabilities of this process");
	return 0;
}
