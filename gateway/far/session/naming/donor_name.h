// SPDX-License-Identifier: Apache-2.0
// Donors as they are written on command lines.
#pragma once

#include <string>
#include <vector>

#include "gateway/base/status.h"
#include "gateway/far/session/settings.h"

namespace rocegw::far {

// Reads "HOST", "HOST:PORT" or "[ADDRESS]:PORT"; an empty port means the default. EINVAL: none of
// them.
StatusOr<Settings::Donor> ReadDonor(const std::string& text);

// Donors of a command line as the options of a session name them.
class DonorList {
 public:
  // Reads the donors; EINVAL: a text is not one.
  static StatusOr<DonorList> Read(const std::vector<std::string>& texts);
  DonorList(DonorList&&) = default;
  DonorList& operator=(DonorList&&) = default;
  DonorList(const DonorList&) = delete;
  DonorList& operator=(const DonorList&) = delete;

  // Sets the donors of the options, which point into the list.
  void NameIn(rocegw_memory_options& options) const;

 private:
  DonorList() = default;

  std::vector<Settings::Donor> donors_;
  std::vector<rocegw_memory_donor> named_;
};

}  // namespace rocegw::far
