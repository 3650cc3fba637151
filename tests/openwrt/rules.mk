# SPDX-License-Identifier: MIT OR Apache-2.0
# As much of OpenWrt's build system as the recipe meets (packaging/openwrt/Makefile), written anew for scripts/test-openwrt: the same names, the same
# steps in the same order, with the values that they have for a little-endian MIPS router. What it needs comes from the caller: SCRATCH, MUSL, LINUX_DIR.
INCLUDE_DIR := $(TOPDIR)/include
BUILD_DIR := $(SCRATCH)/build_dir
DL_DIR := $(SCRATCH)/dl
BIN_DIR := $(SCRATCH)/bin

ARCH := mips
TARGET_CROSS := mipsel-linux-gnu-
TARGET_CC := $(MUSL)/bin/musl-gcc
TARGET_AR := $(TARGET_CROSS)gcc-ar
TARGET_CFLAGS = -Os -pipe -mno-branch-likely -mips32r2 -mtune=24kc -fno-caller-saves -fno-plt -Wno-error=unused-but-set-variable -Wno-error=unused-result \
	-Wformat -Werror=format-security -fstack-protector -D_FORTIFY_SOURCE=1 -Wl,-z,now -Wl,-z,relro $(FLAGS_OF_BUILD)
TARGET_LDFLAGS = -static -znow -zrelro $(LDFLAGS_OF_BUILD)

# PKG_BUILD_FLAGS of a recipe
FLAGS_OF_BUILD = $(if $(filter gc-sections,$(PKG_BUILD_FLAGS)),-ffunction-sections -fdata-sections) $(if $(filter lto,$(PKG_BUILD_FLAGS)),-flto=auto -fno-fat-lto-objects)
LDFLAGS_OF_BUILD = $(if $(filter gc-sections,$(PKG_BUILD_FLAGS)),-Wl,--gc-sections) $(if $(filter lto,$(PKG_BUILD_FLAGS)),-flto=auto -fuse-linker-plugin)

INSTALL_DIR := install -d -m0755
INSTALL_BIN := install -m0755
INSTALL_CONF := install -m0600
INSTALL_DATA := install -m0644
CP := cp -fpR
