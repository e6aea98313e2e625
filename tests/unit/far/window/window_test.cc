// SPDX-License-Identifier: Apache-2.0
// A window onto a space without donors: loads and stores of threads against an array, what is
// evicted, and lost pages, with faults handled by the window's thread and by the faulting one.
#include "gateway/far/window/window.h"

#include <gtest/gtest.h>
#include <setjmp.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "tests/support/random.h"
#include "tests/unit/far/window/fake_donors.h"

namespace rocegw::far {
namespace {

constexpr uint64_t kPage = Window::kPage;
constexpr uint64_t kSlabs = 4;
constexpr uint64_t kPages = kSlabs * FakeDonors::kSlab / kPage;
constexpr uint64_t kResident = 1 << 20;
constexpr uint64_t kWords = kPage / sizeof(uint64_t);

class WindowTest : public ::testing::TestWithParam<Window::Faults> {
 protected:
  void SetUp() override {
    ASSERT_TRUE(donors_.ok());
    const Status status = window_.Open();
    ASSERT_TRUE(status.ok()) << status.text();
  }
  volatile uint64_t* WordsOf(uint64_t page) {
    return reinterpret_cast<volatile uint64_t*>(window_.address() + page * kPage);
  }

  FakeDonors donors_{kSlabs};
  Window window_{donors_.dispatcher(),     0,         kSlabs* FakeDonors::kSlab, kResident,
                 Window::Content::kStored, GetParam()};
};

INSTANTIATE_TEST_SUITE_P(Faults, WindowTest,
                         ::testing::Values(Window::Faults::kByHandler, Window::Faults::kHere),
                         [](const auto& each) {
                           return each.param == Window::Faults::kHere ? "Here" : "ByHandler";
                         });

// Each thread owns every third page. A third thread synchronizes meanwhile.
TEST_P(WindowTest, LoadsReturnWhatWasStoredLast) {
  constexpr uint64_t kThreads = 3;
  const uint64_t seed = testing::TestSeed(71);
  std::vector<uint64_t> stored(kPages, 0);
  std::atomic<uint64_t> wrong{0};
  std::atomic<bool> end{false};
  std::vector<std::thread> threads;
  for (uint64_t thread = 0; thread < kThreads; thread++) {
    threads.emplace_back([&, thread] {
      testing::Random random(seed + thread);
      for (int step = 0; step < 12000; step++) {
        const uint64_t page = random.Below(kPages / kThreads) * kThreads + thread;
        volatile uint64_t* words = WordsOf(page);
        wrong += words[0] != stored[page] || words[kWords - 1] != stored[page] ? 1 : 0;
        if (random.Coin()) continue;
        stored[page] = random.Bits();
        words[0] = stored[page];
        words[kWords - 1] = stored[page];
      }
    });
  }
  std::thread synchronizer([&] {
    while (!end) EXPECT_EQ(window_.Synchronize(), 0);
  });
  for (std::thread& thread : threads) thread.join();
  end = true;
  synchronizer.join();
  EXPECT_EQ(wrong, 0u);
  const rocegw_memory_map_statistics counts = window_.Statistics();
  EXPECT_LE(counts.resident, kResident / kPage);
  EXPECT_GT(counts.evicted, 0u);
  EXPECT_GT(counts.reactivated, 0u);
  EXPECT_EQ(window_.Synchronize(), 0);
  ASSERT_EQ(donors_.dispatcher().FlushAndWait(), 0);
  const std::vector<uint8_t> file = donors_.file().Copy();
  for (uint64_t page = 0; page < kPages; page++) {
    uint64_t word = 0;
    std::memcpy(&word, &file[page * kPage], sizeof word);
    EXPECT_EQ(word, stored[page]) << page;
  }
}

// A few pages are used again and again while all others are read once.
TEST_P(WindowTest, PagesInUseStayWhileOthersPassThrough) {
  constexpr uint64_t kHot = 24;
  window_.SetResident(2 * kResident);
  for (uint64_t page = 0; page < kHot; page++) WordsOf(page)[0] = page + 1;
  uint64_t wrong = 0;
  for (uint64_t pass = 0; pass < 3; pass++) {
    for (uint64_t page = kHot; page < kPages; page++) {
      wrong += WordsOf(page)[0] != 0 ? 1 : 0;
      const uint64_t hot = page % kHot;
      wrong += WordsOf(hot)[0] != hot + 1 ? 1 : 0;
    }
  }
  EXPECT_EQ(wrong, 0u);
  const rocegw_memory_map_statistics counts = window_.Statistics();
  // By arrival, each page in use would be read again after about 400 others, 180 times in all.
  EXPECT_LE(counts.read, 4 * kHot + 3 * (kPages - kHot)) << "pages in use were read again";
  EXPECT_GT(counts.reactivated, kHot);
}

thread_local sigjmp_buf lost_page;
thread_local volatile sig_atomic_t expects_loss = 0;

// The program's handler.
void OnLostPage(int /*number*/, siginfo_t* /*info*/, void* /*context*/) {
  if (expects_loss == 0) abort();
  siglongjmp(lost_page, 1);
}

// Before the first window.
const bool handler_is_set = [] {
  struct sigaction action {};
  action.sa_sigaction = &OnLostPage;
  action.sa_flags = SA_SIGINFO;
  return sigaction(SIGBUS, &action, nullptr) == 0;
}();

class LostPages : public WindowTest {
 protected:
  bool IsLost(uint64_t page) {
    expects_loss = 1;
    const bool lost = sigsetjmp(lost_page, 1) != 0;
    if (!lost) static_cast<void>(WordsOf(page)[0]);
    expects_loss = 0;
    return lost;
  }
};

INSTANTIATE_TEST_SUITE_P(Faults, LostPages,
                         ::testing::Values(Window::Faults::kByHandler, Window::Faults::kHere),
                         [](const auto& each) {
                           return each.param == Window::Faults::kHere ? "Here" : "ByHandler";
                         });

TEST_P(LostPages, ALostPageRaisesSigbusInTheProgramAndOthersDoNot) {
  ASSERT_TRUE(handler_is_set);
  donors_.file().MakeUnreadable(7);
  EXPECT_TRUE(IsLost(7));
  EXPECT_TRUE(IsLost(7));
  EXPECT_FALSE(IsLost(6));
  EXPECT_FALSE(IsLost(8));
  EXPECT_EQ(window_.Statistics().lost, 1u);
}

TEST_P(WindowTest, SystemCallsMeetResidentPages) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const bool served = write(ends[1], window_.address() + 9 * kPage, 8) == 8;
  EXPECT_EQ(served, window_.serves_system_calls());
  EXPECT_TRUE(served || errno == EFAULT);
  EXPECT_FALSE(served && GetParam() == Window::Faults::kHere);
  WordsOf(10)[0] = 11;
  EXPECT_EQ(write(ends[1], window_.address() + 10 * kPage, 8), 8);
  close(ends[0]);
  close(ends[1]);
}

TEST_P(WindowTest, DiscardedPagesAreZero) {
  for (uint64_t page = 0; page < kPages; page++) WordsOf(page)[1] = page + 1;
  window_.Discard(0, kPages / 2 * kPage);
  uint64_t wrong = 0;
  for (uint64_t page = 0; page < kPages; page++) {
    wrong += WordsOf(page)[1] != (page < kPages / 2 ? 0 : page + 1) ? 1 : 0;
  }
  EXPECT_EQ(wrong, 0u);
}

TEST_P(WindowTest, PagesThatLeaveKeepTheirContent) {
  for (uint64_t page = 0; page < kPages; page++) WordsOf(page)[1] = page + 1;
  EXPECT_EQ(window_.Leave(0, kPages / 2 * kPage), 0);
  uint64_t wrong = 0;
  for (uint64_t page = 0; page < kPages; page++) {
    wrong += WordsOf(page)[1] != page + 1 ? 1 : 0;
  }
  EXPECT_EQ(wrong, 0u);
}

}  // namespace
}  // namespace rocegw::far
