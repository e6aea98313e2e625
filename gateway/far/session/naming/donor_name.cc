// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/session/naming/donor_name.h"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace rocegw::far {

StatusOr<Settings::Donor> ReadDonor(const std::string& text) {
  Settings::Donor donor;
  size_t behind = 0;
  if (!text.empty() && text.front() == '[') {
    const size_t end = text.find(']');
    if (end == std::string::npos) return Status{EINVAL, text + ": no ] behind the address"};
    donor.host = text.substr(1, end - 1);
    behind = end + 1;
  } else {
    behind = text.find(':');
    // An IPv6 address without brackets has no port.
    if (behind != text.rfind(':')) behind = std::string::npos;
    donor.host = text.substr(0, behind);
  }
  if (behind != std::string::npos && behind < text.size()) {
    donor.port = text.substr(behind + 1);
    const bool digits = std::all_of(donor.port.begin(), donor.port.end(),
                                    [](char each) { return each >= '0' && each <= '9'; });
    if (text[behind] != ':' || donor.port.empty() || donor.port.size() > 5 || !digits) {
      return Status{EINVAL, text + ": not HOST or HOST:PORT"};
    }
  }
  if (donor.host.empty()) return Status{EINVAL, "'" + text + "': a donor has no host"};
  return donor;
}

StatusOr<DonorList> DonorList::Read(const std::vector<std::string>& texts) {
  DonorList list;
  for (const std::string& text : texts) {
    auto donor = ReadDonor(text);
    if (!donor.ok()) return donor.status();
    list.donors_.push_back(std::move(donor.value()));
  }
  for (const Settings::Donor& donor : list.donors_) {
    list.named_.push_back({donor.host.c_str(), donor.port.empty() ? nullptr : donor.port.c_str()});
  }
  return list;
}

void DonorList::NameIn(rocegw_memory_options& options) const {
  options.donors = named_.data();
  options.donor_count = named_.size();
}

}  // namespace rocegw::far
