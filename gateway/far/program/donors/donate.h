// SPDX-License-Identifier: Apache-2.0
// rocegw-memory donate: offers memory of this host until it is asked to stop.
#pragma once

#include <string>

#include "gateway/far/donor/lease_ledger.h"

namespace rocegw::far {

struct DonateArguments {
  std::string address;  // empty: all
  std::string port;
  std::string metrics;         // "ADDRESS:PORT"; empty: none
  std::string announce;        // folder of the agent (donors_dir); empty: no fleet
  std::string name = "donor";  // in the fleet
  std::string version;         // the program has it
  LeaseLedger::Limits limits;
};

// Returns the exit status.
int Donate(const DonateArguments& arguments);

}  // namespace rocegw::far
