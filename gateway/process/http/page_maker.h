// SPDX-License-Identifier: Apache-2.0
// Page of the metrics server with the thread that makes it. The page's source may block, so the
// connection thread never makes a page. Requests that arrive while a page is being made share the
// next one: a flood of requests costs one page at a time.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

namespace rocegw::process {

struct Page {
  int code = 200;
  std::string body;
  const char* type = "text/plain; charset=utf-8";
};

class PageMaker {
 public:
  // `make` runs on the thread of this object; `made` is called there after each page.
  PageMaker(std::function<Page()> make, std::function<void()> made);
  // Waits for the page in progress.
  ~PageMaker();
  PageMaker(const PageMaker&) = delete;
  PageMaker& operator=(const PageMaker&) = delete;

  // Orders a page that is begun after this call, and returns its number. Any thread.
  uint64_t Order();
  // Returns the page of that number or a later one; nullptr: not made yet. Any thread.
  std::shared_ptr<const Page> Find(uint64_t number) const;

 private:
  void Run();

  const std::function<Page()> make_;
  const std::function<void()> made_;
  mutable std::mutex mutex_;  // guards the fields below, except the thread
  std::condition_variable changed_;
  uint64_t ordered_ = 0;
  uint64_t begun_ = 0;
  uint64_t done_ = 0;
  std::shared_ptr<const Page> page_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace rocegw::process
