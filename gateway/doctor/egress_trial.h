// SPDX-License-Identifier: Apache-2.0
// Tries whether a program of another user can send RoCEv2 packets from this host.
#pragma once

#include "gateway/doctor/facts.h"

namespace rocegw::doctor {

// Sends one byte to UDP 4791 of the loopback address as the user "nobody". The calling thread has
// its own user again afterwards. Never blocks.
EgressGuard TryEgress();

}  // namespace rocegw::doctor
