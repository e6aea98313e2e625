// SPDX-License-Identifier: Apache-2.0
// Destination of a datagram: ibv_ah with the address vector that each WQE contains. Created and
// freed by the library, immutable in between, any thread.
#pragma once

#include <infiniband/verbs.h>

#include "gateway/abi/rocegw_abi.h"

namespace rocegw::client {

struct AddressHandle {
  ibv_ah ibv;  // first: programs hold &ibv
  rocegw_address_vector vector;
};

}  // namespace rocegw::client
