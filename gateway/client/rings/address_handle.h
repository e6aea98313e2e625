// SPDX-License-Identifier: Apache-2.0
// A datagram's destination: ibv_ah with the address vector that goes into each WQE. Made and freed
// by the library alone, immutable in between, any thread.
#pragma once

#include <infiniband/verbs.h>

#include "gateway/abi/rocegw_abi.h"

namespace rocegw::client {

struct AddressHandle {
  ibv_ah ibv;  // first: programs hold &ibv
  rocegw_address_vector vector;
};

}  // namespace rocegw::client
