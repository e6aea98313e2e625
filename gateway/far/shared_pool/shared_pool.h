// SPDX-License-Identifier: Apache-2.0
// Block pool that processes of several hosts share: a cache whose index and values are in the
// memory of donors (pool/table.h). A key belongs to the donors that are live and rank first for it;
// each of its replicas is a value in a table of its own. Any thread; one lock guards the state and
// is not held while values are copied or hashed. The donors may change: one that is no longer named
// gets no further requests, and is left when its last one has ended.
#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "gateway/base/status.h"
#include "gateway/far/link/poller.h"
#include "gateway/far/pool/steps.h"
#include "gateway/far/pool/value_pool.h"
#include "gateway/far/shared_pool/donor_path.h"

namespace rocegw::far {

struct SharedPoolSettings {
  struct Donor {
    std::string host;
    std::string port;
    bool operator==(const Donor&) const = default;
  };
  std::vector<Donor> donors;
  bool donors_change = false;  // SetDonors will be called
  std::vector<uint8_t> secret;
  uint32_t replicas = 1;
  uint32_t most_requests = 64;  // under way
  PathChoice path = PathChoice::kAny;
  uint32_t timeout_ms = 2000;
  uint32_t connect_timeout_ms = 5000;
};

class SharedPool final : public ValuePool {
 public:
  static constexpr uint32_t kMostReplicas = 4;
  static constexpr uint16_t kPort = 7479;
  static constexpr size_t kMostDonors = 64;

  // Joins the donors; at least one of them, others are tried again later. EACCES: a donor has
  // another secret. EINVAL: a donor has blocks of another size.
  static StatusOr<std::unique_ptr<SharedPool>> Open(SharedPoolSettings settings);
  ~SharedPool() override;

  int Put(std::string_view key, const void* value, uint64_t length, rocegw_memory_blocks_done done,
          void* argument) override;
  int Get(std::string_view key, void* buffer, uint64_t size, rocegw_memory_blocks_done done,
          void* argument) override;
  int Has(std::string_view key) override;
  int Remove(std::string_view key) override;
  rocegw_memory_blocks_statistics Statistics() override;
  uint64_t block_bytes() const override { return block_bytes_; }
  // Names the donors of the pool from now on, at most kMostDonors. Any thread.
  void SetDonors(const std::vector<SharedPoolSettings::Donor>& donors);

 private:
  // The last three are of the thread that restores replicas: reads a bucket, gets a value without
  // marking it as used, puts a value that another donor has.
  enum class Kind : uint8_t { kPut, kGet, kFind, kRemove, kScan, kFetch, kRestore };
  // Part of a request at one donor.
  struct Attempt {
    std::unique_ptr<Steps> steps;  // nullptr: none
    uint32_t link = 0;
    uint32_t epoch = 0;  // the link's, when the attempt began
    std::span<const Command> commands;
    size_t posted = 0;        // commands
    uint32_t pending = 0;     // commands that are posted and not complete
    uint32_t generation = 0;  // names its completions
    bool failed = false;      // the donor is lost
    bool waits = false;       // until the path has room
    Clock::time_point since;
  };
  // Request under way, with registered memory for its transfers.
  struct Slot {
    uint8_t* value = nullptr;
    std::array<StepBuffers*, kMostReplicas> buffers{};
    std::array<Attempt, kMostReplicas> attempts;
    Kind kind = Kind::kGet;
    KeyHash key;
    void* buffer = nullptr;  // a get's
    uint64_t bytes = 0;      // size of the value, or of the buffer
    uint64_t value_hash = 0;
    rocegw_memory_blocks_done done = nullptr;
    void* argument = nullptr;
    std::vector<uint32_t> donors;  // the key's, the first one first
    size_t next_donor = 0;         // for a request that asks one after the other
    uint32_t running = 0;          // attempts
    uint32_t lost = 0;             // attempts whose donor was lost
    uint32_t busy = 0;             // attempts that ended with EBUSY
    int64_t best = 0;              // result of an attempt that succeeded; or EMSGSIZE
  };
  // Attempt of a slot; one whose commands are complete is advanced without the lock.
  struct AttemptId {
    uint32_t slot = 0;
    uint32_t number = 0;
  };
  using AttemptIds = std::vector<AttemptId>;

  enum class LinkState : uint8_t { kDown, kUp, kEnding };
  struct Link {
    SharedPoolSettings::Donor donor;
    std::optional<Clock::time_point> leaving_since;  // the pool no longer names the donor
    LinkState state = LinkState::kDown;
    uint32_t epoch = 0;  // counts the paths
    std::unique_ptr<DonorPath> path;
    uint64_t identity = 0;
    uint32_t posted = 0;            // commands that are not complete
    std::deque<AttemptId> waiting;  // for room of the path
    Clock::time_point ending_since;
    Clock::time_point next_try;
    std::chrono::milliseconds pause{0};  // between tries
  };
  explicit SharedPool(SharedPoolSettings settings);
  Status Start();
  Status OpenDevice(ibv_context* context);
  Status MakeSlots(uint64_t block_bytes);
  // Joins a donor that is down.
  Status Join(uint32_t link);

  int Begin(Kind kind, std::string_view key, const void* value, void* buffer, uint64_t bytes,
            rocegw_memory_blocks_done done, void* argument);
  // The same at those donors, of which there is at least one.
  int BeginAt(Kind kind, const KeyHash& key, std::vector<uint32_t> donors, const void* value,
              void* buffer, uint64_t bytes, rocegw_memory_blocks_done done, void* argument);
  // A live donor, as long as its path lasts.
  struct Member {
    uint32_t link = 0;
    uint32_t epoch = 0;
    uint64_t identity = 0;
    bool operator==(const Member&) const = default;
  };
  using Members = std::vector<Member>;
  // With the lock.
  Members LiveMembers() const;
  // Returns the members that the key belongs to, the first one first.
  std::vector<Member> OwnersOf(const KeyHash& key, Members members) const;
  void RestoreReplicas();
  bool MayRestore(const Members& members);
  bool RestoreAll(const Members& members, const Members& whole);
  bool RestoreValue(const KeyHash& key, const Member& source, const Members& members,
                    const Members& whole, std::vector<uint8_t>& value);
  int64_t RunAt(Kind kind, const KeyHash& key, uint32_t link, const uint8_t* value, uint8_t* buffer,
                uint64_t bytes);
  Attempt& AttemptOf(AttemptId id) { return slots_[id.slot].attempts[id.number]; }
  void StartAttempt(AttemptId id, uint32_t link);
  // Goes on with an attempt whose commands have completed. Without the lock.
  void Advance(AttemptId id);
  void AdvanceAll(const AttemptIds& ready);
  // Posts what is left of the attempt's commands.
  void PostLocked(AttemptId id, AttemptIds& ready);
  void OnCompletions(const ibv_wc* completions, size_t count);
  void EndAttempt(AttemptId id, int64_t result);
  void Finish(uint32_t slot);
  static int64_t ResultOf(const Slot& slot);
  // Uses the donor's path no more. Attempts that have nothing under way there are ready.
  void FailLocked(uint32_t link, AttemptIds& ready);
  void CheckTimeouts();
  void EndPaths();
  void LeaveDonors();
  void TakeCare();
  void JoinAgain();
  void WaitForRoom() override;

  const SharedPoolSettings settings_;
  const PoolSecret secret_;
  uint64_t block_bytes_ = 0;
  ibv_pd* pd_ = nullptr;
  ibv_mr* mr_ = nullptr;
  uint8_t* memory_ = nullptr;
  uint64_t memory_bytes_ = 0;
  PathResources resources_;
  Poller poller_;

  std::mutex mutex_;  // guards the following
  std::condition_variable changed_;
  std::vector<Slot> slots_;
  std::vector<uint32_t> free_slots_;
  std::deque<Link> links_;  // grows only, so that numbers and references stay
  bool stop_ = false;
  bool stop_restoring_ = false;
  rocegw_memory_blocks_statistics counts_{};

  std::thread caretaker_;
  std::thread joiner_;
  std::thread restorer_;
};

}  // namespace rocegw::far
