// SPDX-License-Identifier: Apache-2.0
// Session of the library: device, memory, pollers, request path and caretaker, made and undone in
// their order.
#pragma once

#include <memory>
#include <vector>

#include "gateway/base/status.h"
#include "gateway/far/session/caretaker.h"
#include "gateway/far/session/dispatcher.h"

namespace rocegw::far {

class Session {
 public:
  static StatusOr<std::unique_ptr<Session>> Open(const Settings& settings);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  Dispatcher& dispatcher() { return *dispatcher_; }
  const Dispatcher& dispatcher() const { return *dispatcher_; }
  // Ends the session, which has no requests, as the destructor does. Returns what the disk copy
  // lacks.
  Dispatcher::DiskEnd Stop();
  void AddStatistics(rocegw_memory_statistics& statistics);
  // Returns the donors, those that came later included.
  std::vector<Settings::Donor> Donors() { return caretaker_->Donors(); }

 private:
  using Ranges = std::vector<CopyFile::Range>;

  explicit Session(const Settings& settings) : settings_(settings) {}
  Status Start();
  Status FindDonors();
  StatusOr<std::vector<uint32_t>> FindKeptDonors();
  StatusOr<std::unique_ptr<Connection>> FindDevice(const std::vector<Settings::Donor>& donors);
  Status OpenDevice(const std::vector<Settings::Donor>& donors);
  Status StartPollers();
  void CloseDevice();
  StatusOr<std::unique_ptr<DiskCopy>> OpenDisk(Ranges& found, Ranges& lost);
  void OnCompletions(const ibv_wc* completions, size_t count);

  Settings settings_;
  RegisteredMemory memory_;
  Caretaker::Pollers pollers_;
  std::unique_ptr<Dispatcher> dispatcher_;
  std::unique_ptr<Caretaker> caretaker_;
};

}  // namespace rocegw::far
