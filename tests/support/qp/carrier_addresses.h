// SPDX-License-Identifier: Apache-2.0
// Names of carriers that stay where they are while queue pairs are handed over: their addresses.
#pragma once

#include "gateway/flow/carrier_names.h"

namespace rocegw::testing {

class CarrierAddresses final : public flow::CarrierNames {
 public:
  uint64_t NameOf(const flow::Carrier& carrier) override {
    return reinterpret_cast<uintptr_t>(&carrier);
  }
  flow::Carrier* Find(uint64_t name) override { return reinterpret_cast<flow::Carrier*>(name); }
};

}  // namespace rocegw::testing
