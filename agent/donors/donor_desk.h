// SPDX-License-Identifier: Apache-2.0
// Socket on which programs of this host ask for donors of the fleet: a connection is one question
// and one answer. Connections are bounded in number and time. Created, called and destroyed on its
// loop, which outlives it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "agent/donors/donor_counters.h"
#include "gateway/base/status.h"
#include "gateway/base/unique_fd.h"
#include "gateway/far/fleet/announcement.h"
#include "gateway/loop/control_loop.h"

namespace rocegw::agent {

class DonorDesk {
 public:
  static constexpr size_t kMostConnections = 16;

  using Answer = std::function<void(const StatusOr<std::vector<far::NamedDonor>>&)>;
  // Finds donors, and calls `answer` once, later.
  using Find = std::function<void(const far::DonorQuestion& question, Answer answer)>;

  DonorDesk(ControlLoop& loop, Find find, DonorCounters& counters);
  ~DonorDesk();
  DonorDesk(const DonorDesk&) = delete;
  DonorDesk& operator=(const DonorDesk&) = delete;

  // Listens in the folder. Who may open the socket may ask: the user of the agent, and its group.
  Status Open(const std::string& folder);

 private:
  struct Visitor {
    UniqueFd socket;
    std::string text;
    ControlLoop::WatchId watch = 0;
    ControlLoop::TimerId timer = 0;
  };
  using VisitorId = uint64_t;

  void Accept();
  void Read(VisitorId id);
  void Reply(VisitorId id, const std::string& text);
  void End(VisitorId id);

  ControlLoop& loop_;
  const Find find_;
  DonorCounters& counters_;
  std::string path_;
  UniqueFd listener_;
  ControlLoop::WatchId watch_ = 0;
  std::map<VisitorId, Visitor> visitors_;
  VisitorId last_id_ = 0;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace rocegw::agent
