# SPDX-License-Identifier: MIT OR Apache-2.0
MESON_BUILD_DIR := $(PKG_BUILD_DIR)/openwrt-build
MESON_VARS :=
MESON_ARGS :=

comma := ,
meson_list = [$(foreach word,$(1),'$(word)'$(comma))]

define Meson/CrossFile
[binaries]
c = $(call meson_list,$(TARGET_CC))
ar = '$(TARGET_AR)'
strip = '$(TARGET_CROSS)strip'
nm = '$(TARGET_CROSS)gcc-nm'
pkg-config = '/bin/false'
[built-in options]
c_args = $(call meson_list,$(TARGET_CFLAGS))
c_link_args = $(call meson_list,$(TARGET_LDFLAGS))
prefix = '/usr'
[host_machine]
system = 'linux'
cpu_family = 'mips'
cpu = 'mips+24kc'
endian = 'little'
[properties]
needs_exe_wrapper = true
endef
export MESON_CROSS_FILE = $(Meson/CrossFile)

define Build/Configure/Meson
	printf '%s\n' "$$MESON_CROSS_FILE" >$(PKG_BUILD_DIR)/openwrt-cross.txt
	$(MESON_VARS) meson setup --buildtype plain --cross-file $(PKG_BUILD_DIR)/openwrt-cross.txt -Ddefault_library=both $(MESON_ARGS) \
		$(MESON_BUILD_DIR) $(MESON_BUILD_DIR)/..
endef

define Build/Compile/Meson
	+$(MESON_VARS) ninja -C $(MESON_BUILD_DIR) $(1)
endef

define Build/Install/Meson
	+DESTDIR="$(PKG_INSTALL_DIR)" ninja -C $(MESON_BUILD_DIR) install
endef

Build/Configure = $(call Build/Configure/Meson)
Build/Compile = $(call Build/Compile/Meson)
Build/Install = $(call Build/Install/Meson)
