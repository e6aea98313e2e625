// SPDX-License-Identifier: Apache-2.0
// Receiver for one connection. A message whose descriptors are not what is wanted, or were never
// asked for, costs the daemon's side a process (receiver_process.h): a hundred times what the
// program pays to send it. A connection that has caused such a cost waits for its pool's turn
// before its next message; a connection that has not waits for nothing, whatever others do.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "gateway/base/time.h"
#include "gateway/base/timing/token_bucket.h"
#include "gateway/session/descriptors/descriptor_receiver.h"

namespace rocegw::session {

// Turns of a pool's connections to cost a process. Any thread.
class DescriptorTurns {
 public:
  static constexpr uint32_t kPerSecond = 25;
  static constexpr uint32_t kBurst = 100;

  // Waits for the next free turn, in the order of the calls.
  void Await();
  // Takes a turn without waiting: the cost has arisen.
  void Book();
  // Gives a turn back that cost nothing.
  void GiveBack();
  // false: ends all waits, and lets nobody wait. Used while the sessions are to come to rest.
  void SetPaced(bool paced);

 private:
  std::mutex mutex_;  // guards all fields
  std::condition_variable not_paced_;
  TokenBucket turns_{kPerSecond, kBurst};
  bool paced_ = true;
};

// Receiver of one connection, which makes one call at a time.
class PacedReceiver final : public DescriptorReceiver {
 public:
  PacedReceiver(std::shared_ptr<DescriptorReceiver> receiver,
                std::shared_ptr<DescriptorTurns> turns)
      : receiver_(std::move(receiver)), turns_(std::move(turns)) {}

  PassedDescriptor Take(int socket, const WantedDescriptor& wanted,
                        std::vector<UniqueFd>& left) override;
  bool Discard(int socket) override;
  void Finish(std::vector<UniqueFd>& left) override { receiver_->Finish(left); }
  void Keep(int socket) override { receiver_->Keep(socket); }
  void Release(int socket) override { receiver_->Release(socket); }

 private:
  const std::shared_ptr<DescriptorReceiver> receiver_;
  const std::shared_ptr<DescriptorTurns> turns_;
  bool costly_ = false;  // the last message
};

// Turns of all pools. Control thread; receivers may outlive it.
class PoolReceivers {
 public:
  // Returns a receiver for one connection of the pool. `receiver`: receives for all.
  std::shared_ptr<DescriptorReceiver> Of(uint64_t pool,
                                         std::shared_ptr<DescriptorReceiver> receiver);
  void SetPaced(bool paced);

 private:
  std::unordered_map<uint64_t, std::shared_ptr<DescriptorTurns>> by_pool_;
  bool paced_ = true;
};

}  // namespace rocegw::session
