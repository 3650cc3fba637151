// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory that a program maps. vmalloc_user() cannot charge a memory cgroup, so the pages are
 * allocated one by one. Where the data cache has colours, a mapping must have the colour of the
 * pages' address in the kernel: the program maps at the offset ktrxer_memory_offset(), from which
 * the architecture derives the colour.
 */
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/shm.h>
#include <linux/slab.h>
#include <linux/uidgid.h>
#include <linux/vmalloc.h>

#include "module.h"

/* A user with open files: the pages of all these files. */
struct ktrxer_user {
	struct list_head list;
	kuid_t uid;
	unsigned long pages;
	unsigned int files;
};

static DEFINE_MUTEX(ktrxer_users_lock);
static LIST_HEAD(ktrxer_users);

static struct ktrxer_user *ktrxer_user_get(kuid_t uid)
{
	struct ktrxer_user *user;

	list_for_each_entry(user, &ktrxer_users, list)
		if (uid_eq(user->uid, uid))
			return user;
	user = kzalloc(sizeof(*user), GFP_KERNEL_ACCOUNT);
	if (user) {
		user->uid = uid;
		list_add(&user->list, &ktrxer_users);
	}
	return user;
}

static void ktrxer_user_put(struct ktrxer_user *user)
{
	if (user->files)
		return;
	list_del(&user->list);
	kfree(user);
}

static int ktrxer_user_charge(struct ktrxer_memory *memory, unsigned long pages)
{
	const unsigned long limit = rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;
	struct ktrxer_user *user;
	int ret = 0;

	mutex_lock(&ktrxer_users_lock);
	user = ktrxer_user_get(current_uid());
	if (!user) {
		ret = -ENOMEM;
	} else if (pages > limit - min(limit, user->pages) && !capable(CAP_IPC_LOCK)) {
		ret = -ENOMEM;
		ktrxer_user_put(user);
	} else {
		user->pages += pages;
		user->files++;
		memory->user = user;
		memory->charged = pages;
	}
	mutex_unlock(&ktrxer_users_lock);
	return ret;
}

static void ktrxer_user_uncharge(struct ktrxer_memory *memory)
{
	if (!memory->user)
		return;
	mutex_lock(&ktrxer_users_lock);
	memory->user->pages -= memory->charged;
	memory->user->files--;
	ktrxer_user_put(memory->user);
	mutex_unlock(&ktrxer_users_lock);
	memory->user = NULL;
}

static int ktrxer_pages_take(struct ktrxer_memory *memory, unsigned long count)
{
	const gfp_t gfp = GFP_KERNEL_ACCOUNT | __GFP_HIGHMEM | __GFP_ZERO | __GFP_NOWARN |
			  __GFP_RETRY_MAYFAIL;

	memory->pages = kvcalloc(count, sizeof(*memory->pages), GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!memory->pages)
		return -ENOMEM;
	for (; memory->count < count; memory->count++) {
		memory->pages[memory->count] = alloc_page(gfp);
		if (!memory->pages[memory->count] || fatal_signal_pending(current)) {
			memory->count += !!memory->pages[memory->count];
			return -ENOMEM;
		}
		cond_resched();
	}
	/* VM_USERMAP: remap_vmalloc_range() may give them to a program. */
	memory->at = vmap(memory->pages, count, VM_MAP | VM_USERMAP, PAGE_KERNEL);
	return memory->at ? 0 : -ENOMEM;
}

int ktrxer_memory_take(struct ktrxer_memory *memory, size_t bytes, size_t more)
{
	const unsigned long count = bytes >> PAGE_SHIFT;
	int ret;

	/* One ring may take a quarter of the memory, and of the kernel's addresses on 32 bits. */
	if (count > totalram_pages() / 4 || bytes > VMALLOC_TOTAL / 4)
		return -ENOMEM;
	ret = ktrxer_user_charge(memory, count + (more >> PAGE_SHIFT));
	if (!ret)
		ret = ktrxer_pages_take(memory, count);
	if (ret)
		ktrxer_memory_free(memory);
	return ret;
}

void ktrxer_memory_free(struct ktrxer_memory *memory)
{
	if (memory->at)
		vunmap(memory->at);
	memory->at = NULL;
	while (memory->count)
		__free_page(memory->pages[--memory->count]);
	kvfree(memory->pages);
	memory->pages = NULL;
	ktrxer_user_uncharge(memory);
}

u32 ktrxer_memory_offset(const struct ktrxer_memory *memory)
{
	return (unsigned long)memory->at & (SHMLBA - 1);
}

static int ktrxer_pages_map(const struct ktrxer_memory *memory, struct vm_area_struct *vma)
{
#ifdef KTRXER_HAS_PAGE_KMEMCG
	/* These kernels give a page of a cgroup a type, which vm_insert_page() refuses. */
	unsigned long i;
	int ret = 0;

	for (i = 0; i < memory->count && !ret; i++)
		ret = remap_pfn_range(vma, vma->vm_start + (i << PAGE_SHIFT),
				      page_to_pfn(memory->pages[i]), PAGE_SIZE, vma->vm_page_prot);
	return ret;
#else
	return remap_vmalloc_range(vma, memory->at, 0);
#endif
}

int ktrxer_memory_map(const struct ktrxer_memory *memory, struct vm_area_struct *vma)
{
	if (vma->vm_pgoff != ktrxer_memory_offset(memory) >> PAGE_SHIFT ||
	    vma_pages(vma) != memory->count || !(vma->vm_flags & VM_SHARED) ||
	    vma->vm_flags & VM_EXEC)
		return -EINVAL;
	/* A child process does not inherit the mapping, so it cannot write to the ring. */
	vm_flags_set(vma, VM_DONTCOPY);
	return ktrxer_pages_map(memory, vma);
}
