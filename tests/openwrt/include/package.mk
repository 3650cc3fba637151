# SPDX-License-Identifier: MIT OR Apache-2.0
all: compile
PKG_BUILD_DIR ?= $(BUILD_DIR)/$(PKG_NAME)-$(PKG_VERSION)
PKG_INSTALL_DIR ?= $(PKG_BUILD_DIR)/ipkg-install
STAMP_PREPARED := $(PKG_BUILD_DIR)/.prepared
STAMP_CONFIGURED := $(PKG_BUILD_DIR)/.configured
STAMP_BUILT := $(PKG_BUILD_DIR)/.built

$(foreach field,PKG_NAME PKG_VERSION PKG_RELEASE PKG_SOURCE PKG_HASH PKG_LICENSE,$(if $(strip $($(field))),,$(error the recipe has no $(field))))

define Build/Prepare
	echo "$(PKG_HASH)  $(DL_DIR)/$(PKG_SOURCE)" | sha256sum --check --quiet
	rm -rf $(PKG_BUILD_DIR)
	mkdir -p $(PKG_BUILD_DIR)
	tar -C $(PKG_BUILD_DIR)/.. -xzf $(DL_DIR)/$(PKG_SOURCE)
	for file in $(PKG_LICENSE_FILES); do test -f $(PKG_BUILD_DIR)/$$file; done
endef

# A recipe's Build/... are known only once all of it is read.
define Build/DefaultTargets
$(STAMP_PREPARED):
	$$(Build/Prepare)
	touch $$@
$(STAMP_CONFIGURED): $(STAMP_PREPARED)
	$$(Build/Configure)
	touch $$@
$(STAMP_BUILT): $(STAMP_CONFIGURED)
	rm -rf $(PKG_INSTALL_DIR)
	$$(Build/Compile)
	$$(Build/Install)
	touch $$@
  define Build/DefaultTargets
  endef
endef

define BuildPackage
  $(eval $(call Package/$(1)))
  $(foreach field,TITLE CATEGORY SECTION,$(if $(strip $($(field))),,$(error Package/$(1) has no $(field))))
  $(eval $(Build/DefaultTargets))
  $(eval $(call BuildPackage/rules,$(1)))
endef

define BuildPackage/rules
compile: $(BIN_DIR)/$(1)
$(BIN_DIR)/$(1): $(STAMP_BUILT)
	$(call Package/$(1)/install,$(BIN_DIR)/$(1))
endef

.PHONY: all compile
compile:
