// SPDX-License-Identifier: Apache-2.0
// Driver of the upgrade in progress: the elected controller has the gateways replaced, and its
// writes carry the fence of its term. An order to an agent is stored before it is sent, with the
// number of take-overs that the gateway has had: a controller that takes over sends the same order,
// and a gateway that was replaced already is not replaced again. Orders of persons reach the driver
// through the store. Owns a thread; destroyed before its store, hosts and board.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "controlplane/store/election.h"
#include "controlplane/upgrades/host_access.h"
#include "controlplane/upgrades/stored_upgrade.h"
#include "controlplane/upgrades/take_over_records.h"
#include "controlplane/upgrades/upgrade_board.h"

namespace rocegw::upgrades {

class UpgradeDriver {
 public:
  // `candidate`: host and process of this controller, for display.
  UpgradeDriver(store::Store& store, HostAccess& hosts, UpgradeBoard& board, std::string candidate);
  ~UpgradeDriver();
  UpgradeDriver(const UpgradeDriver&) = delete;
  UpgradeDriver& operator=(const UpgradeDriver&) = delete;

 private:
  // Question to an agent that has no answer yet.
  struct Question {
    uint64_t number = 0;
    bool replaces = false;  // else it asks for the gateway's status
  };

  void Run();
  void Pass();
  // Reads the upgrade in progress, if it has changed. Returns false if there is none.
  bool Load();
  void Forget();
  // Writes the audit records of take-overs, now and then.
  void RecordTakeOvers();
  void OnAnswer(const Arrived& arrived);
  void OnReplacement(int index, const HostAnswer& answer);
  void AskDue();
  void Ask(const std::string& gateway, const fleet::v1::TunnelQuestion& question, bool replaces,
           std::chrono::seconds limit);
  // Carries out a step on a copy of the upgrade and stores the result. Returns false if it was not
  // stored; the next pass reads the upgrade again.
  bool Store(const std::function<Step(admin::v1::Upgrade&)>& change);
  HostState StateOf(const std::string& gateway);
  int IndexOf(const std::string& gateway) const;
  void Post();

  store::Store& store_;
  HostAccess& hosts_;
  UpgradeBoard& board_;
  const std::string who_;
  const std::shared_ptr<Inbox> inbox_ = std::make_shared<Inbox>();
  std::optional<store::Term> term_;
  std::optional<StoredUpgrade> stored_;
  std::optional<admin::v1::Upgrade> newest_;  // for the board
  std::map<std::string, Question> asked_;     // by gateway
  // Gateways whose last question failed; value: when it is asked again, seconds since 1970.
  std::map<std::string, int64_t> again_at_;
  // Gateways that were not connected or gave no answer at the last look; value: since when in this
  // term, seconds since 1970.
  std::map<std::string, int64_t> away_since_;
  int64_t driven_since_ = 0;  // begin of the term, seconds since 1970
  uint64_t questions_ = 0;
  TakeOverRecords records_;
  int64_t record_at_ = 0;  // seconds since 1970
  std::atomic<bool> stopping_{false};
  store::Election election_;
  std::thread thread_;
};

}  // namespace rocegw::upgrades
