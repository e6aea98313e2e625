// SPDX-License-Identifier: Apache-2.0
#include "tests/interop/rdma_check/session.h"

#include <sstream>

#include "tests/interop/rdma_check/failure.h"

namespace rocegw::interop {

std::string Settings::Format() const {
  std::ostringstream out;
  out << use_cm << ' ' << use_events << ' ' << mtu << ' ' << qps << ' ' << seed;
  return out.str();
}

Settings Settings::Parse(const std::string& text) {
  std::istringstream in(text);
  Settings settings;
  in >> settings.use_cm >> settings.use_events >> settings.mtu >> settings.qps >> settings.seed;
  Check(!in.fail(), "settings not understood: ", text);
  return settings;
}

}  // namespace rocegw::interop
