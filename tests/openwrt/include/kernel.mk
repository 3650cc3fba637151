# SPDX-License-Identifier: MIT OR Apache-2.0
# Modules are built in the kernel's own part of build_dir, so a recipe with a module is, too.
KERNEL_BUILD_DIR := $(BUILD_DIR)/linux-malta
PKG_BUILD_DIR ?= $(KERNEL_BUILD_DIR)/$(PKG_NAME)-$(PKG_VERSION)
KERNEL_MAKE = $(MAKE) -C $(LINUX_DIR) ARCH=$(ARCH) CROSS_COMPILE=$(TARGET_CROSS) CC=$(TARGET_CROSS)gcc CONFIG_DEBUG_INFO_BTF_MODULES=

ifeq ($(LINUX_DIR),)
KERNEL_MAKE = @: no kernel here:
endif

# The modules that the device loads at each boot.
define AutoProbe
add_module "" "$(1)" "$(2)";
endef

# Becomes a package kmod-NAME of its FILES.
define KernelPackage
  $(eval $(call KernelPackage/$(1)))
  $(foreach field,TITLE SUBMENU FILES AUTOLOAD,$(if $(strip $($(field))),,$(error KernelPackage/$(1) has no $(field))))
  $(if $(filter-out %=y %=n %=m,$(KCONFIG)),$(error KCONFIG of KernelPackage/$(1): each of them wants =y or =m, or it is empty where the kernel has it not))
  $(if $(LINUX_DIR),$(eval $(call KernelPackage/rules,$(1))))
endef

define KernelPackage/rules
compile: $(BIN_DIR)/kmod-$(1)
$(BIN_DIR)/kmod-$(1): $(STAMP_BUILT)
	$(INSTALL_DIR) $$@/lib/modules/$$(notdir $(LINUX_DIR))
	$(CP) -L $(FILES) $$@/lib/modules/$$(notdir $(LINUX_DIR))/
endef
