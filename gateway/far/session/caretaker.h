// SPDX-License-Identifier: Apache-2.0
// Keeps a session's donors and replicas as they should be: connects to donors, and again to those
// that were lost, leases memory for slabs that lack a replica, copies data to it, renews leases,
// and notices donors that end or hang. When the device of this host ends, because its gateway is
// restarted, it opens the device again and continues the session at its donors. Two threads: one
// for all that, one that waits for connections. A third one asks the agent of this host for donors
// that came later, if it named the first ones; a fourth one saves the placement of replicas, if it
// outlives the process: a slow disk must not keep leases from being renewed.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "gateway/base/status.h"
#include "gateway/base/unique_fd.h"
#include "gateway/far/link/connection.h"
#include "gateway/far/link/poller.h"
#include "gateway/far/session/copy_rounds.h"
#include "gateway/far/session/dispatcher.h"

namespace rocegw::far {

class Caretaker {
 public:
  using Pollers = std::vector<std::unique_ptr<Poller>>;

  // Closes the device that has ended, with the completion queues of the pollers; and opens it
  // again, which fails while it is not there. By the connecting thread.
  struct DeviceCalls {
    std::function<void()> close;
    std::function<Status(const std::vector<Settings::Donor>& donors)> open;
  };

  // All arguments outlive the caretaker. The donor's completion queue is that of the poller with
  // its number modulo their number.
  Caretaker(const Settings& settings, RegisteredMemory& memory, Pollers& pollers,
            Dispatcher& dispatcher, DeviceCalls device);
  ~Caretaker() { Stop(); }
  Caretaker(const Caretaker&) = delete;
  Caretaker& operator=(const Caretaker&) = delete;

  Status Start();
  // Waits until all slabs have their replicas. An error says why they cannot have them.
  Status WaitUntilPlaced();
  // Ends the threads and all connections; the session has no requests.
  void Stop();
  // Returns the donors, those that came later included.
  std::vector<Settings::Donor> Donors();

  // Called by pollers; nullopt: bytes that are no message. Returns whether the connection goes on:
  // a donor only answers what it was asked.
  bool OnMessage(const Connection& connection, const std::optional<Message>& message);
  // Has the caretaker look at the donors at once. Any thread.
  void Wake();

 private:
  struct Incoming {
    uint32_t donor;
    Message message;
  };
  struct Lease {  // asked for, not answered yet
    uint32_t donor;
    Clock::time_point deadline;
  };
  struct CopyInProgress {
    uint32_t slab;
    uint64_t replica;  // serial number; or Copy::kDisk
    uint64_t position = 0;
    bool running = false;
  };

  bool IsCancelled() const;
  void Care();
  void HandleMessages();
  void HandleEvents();
  bool TakeDeviceEvents();
  void OnDeviceLost();
  void OnRenewed(uint32_t donor, const Message& message);
  void OnLeased(uint32_t donor, const Message& message);
  void LeaseForSlabs();
  void ReturnDropped();
  void RenewLeases();
  void FinishDisk();
  void Close();
  void FindCopy();
  void ContinueCopy();

  void SavePlacement();

  void Connect();
  bool ReopenDevice(std::unique_lock<std::mutex>& lock);
  Status ConnectTo(uint32_t donor, const Settings::Donor& named);
  void Ask();
  void TakeFound();
  bool IsUp(uint32_t donor);
  int SendTo(uint32_t donor, const Message& message);

  const Settings& settings_;
  RegisteredMemory& memory_;
  Pollers& pollers_;
  Dispatcher& dispatcher_;
  const DeviceCalls device_;

  std::mutex mutex_;  // guards the following, up to the blank line
  std::condition_variable changed_;
  bool stop_ = false;
  bool device_lost_ = false;  // the connecting thread opens it again
  bool finish_disk_ = false;  // the disk copy is to get at once what it lacks
  std::deque<Incoming> incoming_;
  std::optional<bool> copied_;                 // result of the copy in progress
  std::vector<Settings::Donor> donors_;        // only the caring thread adds some
  std::vector<Settings::Donor> found_;         // by the asking thread, not taken yet
  std::vector<Clock::time_point> connect_at_;  // by donor
  std::vector<bool> tried_;                    // by donor: connecting has succeeded or failed once
  Status last_connect_;
  bool placed_ = false;
  bool agreeing_ = false;      // replicas of an earlier process are being made equal
  bool agreed_ = false;        // all are equal, and the session has continued at the donors
  bool opened_ = false;        // the program has the session
  bool stuck_ = false;         // no donor has room for a slab that lacks a replica
  bool needs_donors_ = false;  // the same, or for one whose replica leaves a draining donor

  bool device_closed_ = false;  // the connecting thread's alone: the lost device is closed

  // The caring thread's alone.
  std::map<uint32_t, Lease> leases_;          // by slab
  std::vector<Dispatcher::Dropped> dropped_;  // leases to return
  std::optional<CopyInProgress> copy_;
  Clock::time_point copy_at_;  // not earlier, after a copy to a replica that failed
  CopyRounds rounds_;          // copies to the disk
  Clock::time_point renew_at_;

  UniqueFd wake_fd_;
  UniqueFd stop_fd_;  // readable from Stop on
  std::thread caring_;
  std::thread connecting_;
  std::thread asking_;  // only if the fleet names the donors
  std::thread saving_;  // only if the placement is kept
};

}  // namespace rocegw::far
