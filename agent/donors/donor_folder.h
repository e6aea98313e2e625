// SPDX-License-Identifier: Apache-2.0
// Folder in which donors of this host announce themselves. Announcements are foreign text: their
// number, size and values are bounded, and one that does not change for a while is of a donor that
// is gone. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "agent/donors/donor_counters.h"
#include "gateway/base/status.h"
#include "gateway/base/time.h"
#include "gateway/far/fleet/announcement.h"

namespace rocegw::agent {

class DonorFolder {
 public:
  static constexpr size_t kMostDonors = 16;

  DonorFolder(std::string path, DonorCounters& counters)
      : path_(std::move(path)), counters_(counters) {}

  // Creates the folder if it is missing. EPERM: other users can write to it.
  Status Open() const;
  // Returns the donors that announce themselves, by name. `wall_ns`: time since 1970, by which a
  // file is judged that is seen for the first time.
  std::map<std::string, far::Announcement> Read(TimePoint now, int64_t wall_ns);
  // Whether donors announce themselves, or have done so and left their orders here.
  bool had_donors() const { return had_donors_; }
  // Replaces the orders of a donor if its file has others.
  Status Order(const std::string& name, const far::DonorOrders& orders);

  const std::string& path() const { return path_; }

 private:
  // Why files are refused, by the donor's name; "": names that are none.
  using Problems = std::map<std::string, std::string>;

  struct Seen {
    int64_t changed_ns = 0;  // as the file says
    TimePoint at;            // when that was seen
  };

  // Counts the refusal, and logs it if it is new.
  void Refuse(const std::string& name, const std::string& why, Problems& problems);

  const std::string path_;
  DonorCounters& counters_;
  std::map<std::string, Seen> seen_;
  Problems problems_;  // logged
  bool had_donors_ = false;
};

}  // namespace rocegw::agent
