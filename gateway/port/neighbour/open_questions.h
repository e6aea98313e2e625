// SPDX-License-Identifier: Apache-2.0
// Addresses that are being resolved, by the pools that want them. A pool has a bounded number, each
// for a bounded time: a program that looks for many addresses neither fills the host's neighbour
// table nor floods the link, and waits for no other pool. Not safe between threads.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <vector>

#include "gateway/base/ids.h"
#include "gateway/base/time.h"
#include "gateway/wire/gid.h"

namespace rocegw::port {

class OpenQuestions {
 public:
  static constexpr size_t kMostPerPool = 64;
  // As long as Linux asks: three times, a second apart.
  static constexpr Duration kPatience = Seconds(3);
  // Age from which on a question makes room for another one of its pool.
  static constexpr Duration kLeast = Seconds(1);

  struct Question {
    wire::Gid about;
    PoolTag pool;
    TimePoint since;
    TimePoint asked;  // by the owner of this object; kNotAsked at first
    bool due = true;  // to be asked in this round; see NextDue
  };
  static constexpr TimePoint kNotAsked{INT64_MIN / 2};

  struct Opened {
    Question* question = nullptr;  // valid until the next call; nullptr: the pool has too many
    bool is_new = false;
  };
  // Returns the pool's question about the address; opens it if the pool may have one more.
  Opened Open(TimePoint now, PoolTag pool, const wire::Gid& about);

  // Ends all questions about the address. Returns the pool of one of them; nothing: there was none.
  std::optional<PoolTag> Close(const wire::Gid& about);

  // Returns a question that is due, of another pool than the last one if others have any, and marks
  // it as not due.
  std::optional<wire::Gid> NextDue();
  void EndOld(TimePoint now);
  // Ends the questions that are too old, and makes all others due.
  void AskAllAgain(TimePoint now);

 private:
  std::map<PoolTag, std::vector<Question>> pools_;  // oldest first; none is empty
  PoolTag last_;                                    // pool of the last due question
};

}  // namespace rocegw::port
