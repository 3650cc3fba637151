# SPDX-License-Identifier: GPL-2.0-only
# What the headers of this kernel have; compat/ adds the rest. Distributions take parts of later
# kernels into earlier ones, so the number of the version says nothing.
has = $(if $(shell grep -lw '$(2)' '$(srctree)/include/linux/$(1)' 2>/dev/null),-DKTRXER_HAS_$(3))
ktrxer-has := $(call has,hrtimer.h,hrtimer_setup,HRTIMER_SETUP)
ktrxer-has += $(call has,mm.h,vm_flags_set,VM_FLAGS_SET)
ktrxer-has += $(call has,netdevice.h,netdevice_tracker,NETDEVICE_TRACKER)
ktrxer-has += $(call has,netdevice.h,netdev_hold,NETDEV_HOLD)
ktrxer-has += $(call has,skbuff.h,skb_tstamp,SKB_TSTAMP)
ktrxer-has += $(call has,sched/isolation.h,HK_TYPE_DOMAIN,HK_TYPE_DOMAIN)
ktrxer-has += $(call has,page-flags.h,PG_kmemcg,PAGE_KMEMCG)
ktrxer-has += $(if $(wildcard $(srctree)/include/linux/unaligned.h),-DKTRXER_HAS_UNALIGNED_H)
