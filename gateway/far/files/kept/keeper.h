// SPDX-License-Identifier: Apache-2.0
// Keeps a tree of files in a journal: commits what has changed when a program asks for it by
// fsync(2), and from time to time. A commit describes files whose data is where the space keeps
// what it flushes. Blocks that a commit still names are not used for anything else. Owns a thread.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "gateway/base/status.h"
#include "gateway/far/files/kept/journal.h"

namespace rocegw::far {

class Keeper {
 public:
  using Done = std::function<void(int status)>;

  // Called by the keeper's thread.
  struct Calls {
    // Returns records of what has changed since the last call, or of everything.
    std::function<std::string(bool everything)> record;
    // Waits until all data that was written before is kept. Returns 0 or a negative errno value.
    std::function<int()> flush;
    // A commit has ended. `kept`: it has what the last call of `record` returned.
    std::function<void(bool kept)> committed;
  };

  Keeper(std::unique_ptr<Journal> journal, Calls calls);
  ~Keeper() { Stop(); }
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;

  // The first commit replaces what the journal has.
  void Start();
  // Commits what there is, and ends.
  void Stop();

  // Calls `done` when all changes before are kept; negative errno value: they are not. Any thread.
  void Sync(Done done);
  // Has the keeper commit soon: freed blocks are needed. Any thread.
  void Hurry();

 private:
  void Run();
  Status Commit(bool asked);

  const std::unique_ptr<Journal> journal_;
  const Calls calls_;
  std::string records_;      // to be committed, also those of commits that failed
  bool everything_ = true;   // the next commit replaces all earlier ones
  uint64_t most_bytes_ = 0;  // a larger journal is written anew

  std::mutex mutex_;  // guards the following
  std::condition_variable wake_;
  std::vector<Done> waiting_;
  bool hurry_ = false;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace rocegw::far
