// SPDX-License-Identifier: Apache-2.0
// A tree of files that is kept in a journal, under crashes at random moments: random operations,
// some of them followed by a sync, then a crash that loses what was not flushed, page by page at
// random, and a new start from what is left. Each file has bytes of its own, so that blocks that
// got to a wrong file are seen.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "gateway/far/files/kept/keeper.h"
#include "gateway/far/files/tree.h"
#include "tests/support/random.h"

namespace rocegw::far {
namespace {

constexpr uint64_t kBlocks = 12;
constexpr uint64_t kBytes = kBlocks * Blocks::kBytes;
constexpr uint64_t kMostFile = 3 * Blocks::kBytes;
constexpr timespec kKeptTime{1000, 0};
constexpr uint8_t kGarbage = 0xa5;  // that the space begins with

// A space with a disk: what was not flushed may be missing after a crash.
class Disk final : public Space {
 public:
  explicit Disk(std::vector<uint8_t> bytes) : bytes_(std::move(bytes)), flushed_(bytes_) {}

  int Submit(Direction direction, uint64_t offset, uint8_t* buffer, uint64_t length, Done done,
             void* argument) override {
    {
      const std::lock_guard lock(mutex_);
      uint8_t* const at = &bytes_[offset];
      if (direction == Direction::kRead) std::memcpy(buffer, at, length);
      if (direction == Direction::kWrite) std::memcpy(at, buffer, length);
    }
    done(argument, 0);
    return 0;
  }
  uint8_t* Allocate(uint64_t /*bytes*/) override { return nullptr; }
  void Free(uint8_t* /*memory*/) override {}
  void Flush(Done done, void* argument) override {
    {
      const std::lock_guard lock(mutex_);
      flushed_ = bytes_;
    }
    done(argument, 0);
  }
  // `copy` copies the journal at that moment: none of the flushes before is missing on the disk,
  // and there is none afterwards.
  template <typename Copy>
  std::vector<uint8_t> Crash(testing::Random& random, const Copy& copy) {
    const std::lock_guard lock(mutex_);
    copy();
    std::vector<uint8_t> left = flushed_;
    for (uint64_t at = 0; at < left.size(); at += 4096) {
      if (random.Coin()) std::copy_n(&bytes_[at], 4096, &left[at]);
    }
    return left;
  }

 private:
  std::mutex mutex_;
  std::vector<uint8_t> bytes_;
  std::vector<uint8_t> flushed_;
};

// Files as a mounted server has them, with a journal at `path`.
class Server {
 public:
  Server(std::vector<uint8_t> bytes, const std::string& path)
      : disk(std::move(bytes)), data(disk, kBytes, 1 << 20), tree(1000, Root(), kKeptTime) {
    std::string records;
    bool exists = false;
    auto journal = Journal::Open(path, kBytes, &records, &exists);
    EXPECT_TRUE(journal.ok()) << journal.status().text();
    KeptFiles kept;
    EXPECT_TRUE(kept.Apply(records));
    data.KeepRecords([this] { keeper->Hurry(); });
    tree.KeepRecords();
    if (!kept.nodes.empty()) {
      EXPECT_TRUE(kept.Finish(Tree::kRoot));
      EXPECT_TRUE(tree.Restore(kept, [&](uint64_t number) {
        auto file = data.Restore(number, kept.data[number]);
        EXPECT_NE(file, nullptr) << "two files have one block";
        return file;
      }));
      for (const auto& [number, ignored] : kept.data) {
        EXPECT_EQ(data.ZeroTail(tree.Find(number)->file), 0);
      }
    }
    EXPECT_TRUE(exists || journal.value()->Replace("").ok());
    keeper = std::make_unique<Keeper>(
        std::move(journal.value()),
        Keeper::Calls{.record =
                          [this](bool everything) {
                            RecordWriter writer;
                            const std::lock_guard lock(mutex);
                            tree.Record(everything, writer);
                            data.Record(everything, writer);
                            return writer.Take();
                          },
                      .flush =
                          [this] {
                            std::promise<int> done;
                            data.Flush([&done](int status) { done.set_value(status); });
                            return done.get_future().get();
                          },
                      .committed = [this](bool is_kept) { data.Committed(is_kept); }});
    keeper->Start();
  }

  static NewNode Root() {
    NewNode root;
    root.mode = S_IFDIR | 0755;
    return root;
  }
  void Sync() {
    std::promise<int> done;
    keeper->Sync([&done](int status) { done.set_value(status); });
    EXPECT_EQ(done.get_future().get(), 0);
  }
  FileData::FilePointer Find(const std::string& name) {
    const std::lock_guard lock(mutex);
    int error = 0;
    Inode* const inode = tree.Lookup(Tree::kRoot, name.c_str(), &error);
    return inode != nullptr ? inode->file : nullptr;
  }
  void Create(const std::string& name) {
    NewNode node;
    node.mode = S_IFREG | 0644;
    node.file = data.Make(kKeptTime);
    const std::lock_guard lock(mutex);
    Inode* made = nullptr;
    ASSERT_EQ(tree.Make(Tree::kRoot, name.c_str(), node, kKeptTime, &made), 0);
    data.SetNumber(made->file, made->number);
  }
  // Returns 0 or ENOSPC.
  int Write(const FileData::FilePointer& file, uint64_t offset, const std::string& bytes) {
    int result = 1;
    data.Write(file, offset, reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size(),
               kKeptTime, [&result](int status) { result = status; });
    return result;
  }
  std::string Read(const FileData::FilePointer& file) {
    std::string bytes;
    data.Read(file, 0, kMostFile * 2, [&bytes](int status, const uint8_t* got, uint64_t length) {
      EXPECT_EQ(status, 0);
      bytes.assign(reinterpret_cast<const char*>(got), length);
    });
    return bytes;
  }

  Disk disk;
  std::mutex mutex;
  FileData data;
  Tree tree;
  std::unique_ptr<Keeper> keeper;
};

// Bytes that were ever written to a file, whatever its name.
using Tags = std::set<uint8_t>;

struct KeptModel {
  std::shared_ptr<Tags> tags = std::make_shared<Tags>();
  std::string bytes;
  std::optional<std::string> synced;  // as it was at the last sync, unless it has changed since
};

// Says where texts that are too long to be printed differ; empty: nowhere.
std::string Difference(const std::string& got, const std::string& wanted) {
  if (got == wanted) return "";
  const auto where = std::mismatch(got.begin(), got.end(), wanted.begin(), wanted.end());
  const auto at = where.first - got.begin();
  const auto number = [](auto place, const std::string& text) {
    return place != text.end() ? std::to_string(static_cast<uint8_t>(*place)) : "the end";
  };
  return std::to_string(got.size()) + " bytes, not " + std::to_string(wanted.size()) + "; at " +
         std::to_string(at) + " " + number(where.first, got) + ", not " +
         number(where.second, wanted);
}

class Scene {
 public:
  explicit Scene(testing::Random& random) : random_(random) {
    char pattern[] = "/tmp/kept-files-XXXXXX";
    directory_ = mkdtemp(pattern);
    server_ = std::make_unique<Server>(std::vector<uint8_t>(kBytes, kGarbage), Path());
  }
  ~Scene() {
    server_.reset();
    std::filesystem::remove_all(directory_);
  }

  void Step() {
    const std::string name(1, static_cast<char>('a' + random_.Below(5)));
    const auto file = server_->Find(name);
    ASSERT_EQ(file != nullptr, files_.contains(name)) << name;
    if (file == nullptr) {
      server_->Create(name);
      files_[name] = {};
      had_name_[name].insert(files_[name].tags);
      return;
    }
    KeptModel& model = files_[name];
    const uint64_t begin = random_.Below(kMostFile);
    const uint64_t length = random_.Between(1, std::min<uint64_t>(kMostFile - begin, 90000));
    switch (random_.Below(8)) {
      case 0: {
        const std::lock_guard lock(server_->mutex);
        ASSERT_EQ(server_->tree.Unlink(Tree::kRoot, name.c_str(), kKeptTime), 0);
        files_.erase(name);
        return;
      }
      case 1: {
        model.synced.reset();
        ASSERT_EQ(server_->data.SetSize(file, begin, kKeptTime), 0);
        model.bytes.resize(begin, '\0');
        return;
      }
      case 2: {
        const std::string other(1, static_cast<char>('a' + random_.Below(5)));
        const std::lock_guard lock(server_->mutex);
        ASSERT_EQ(server_->tree.Rename(Tree::kRoot, name.c_str(), Tree::kRoot, other.c_str(),
                                       Tree::RenameKind::kReplace, kKeptTime),
                  0);
        if (other == name) return;
        KeptModel moved = std::move(model);
        files_.erase(name);
        moved.synced.reset();
        had_name_[other].insert(moved.tags);
        files_[other] = std::move(moved);
        return;
      }
      case 3:
        server_->Sync();
        for (auto& [each, synced] : files_) synced.synced = synced.bytes;
        return;
      default: {
        tag_ = static_cast<uint8_t>(tag_ % 250 + 1);
        if (tag_ == kGarbage) tag_++;
        model.tags->insert(tag_);
        const std::string bytes(length, static_cast<char>(tag_));
        const int error = server_->Write(file, begin, bytes);
        if (error == -ENOSPC) return;
        ASSERT_EQ(error, 0);
        model.synced.reset();
        if (model.bytes.size() < begin + length) model.bytes.resize(begin + length, '\0');
        model.bytes.replace(begin, length, bytes);
      }
    }
  }

  void Compare() {
    for (const auto& [name, model] : files_) {
      ASSERT_EQ(Difference(server_->Read(server_->Find(name)), model.bytes), "") << name;
    }
  }

  void Crash() {
    const std::string copy = directory_ + "/copy";
    const std::vector<uint8_t> left = server_->disk.Crash(random_, [&] {
      std::filesystem::copy_file(Path(), copy, std::filesystem::copy_options::overwrite_existing);
    });
    server_.reset();
    std::filesystem::rename(copy, Path());
    server_ = std::make_unique<Server>(left, Path());
    std::map<std::string, KeptModel> found;
    {
      const std::lock_guard lock(server_->mutex);
      for (const auto& [name, number] : server_->tree.Find(Tree::kRoot)->names) found[name];
    }
    for (auto& [name, model] : found) {
      model.bytes = server_->Read(server_->Find(name));
      // The crash may have undone renames: any file that had the name may have it again.
      for (const auto& tags : had_name_[name]) model.tags->insert(tags->begin(), tags->end());
      for (const char byte : model.bytes) {
        ASSERT_TRUE(byte == 0 || model.tags->contains(static_cast<uint8_t>(byte)))
            << name << " has a byte of another file: " << static_cast<int>(byte);
      }
    }
    had_name_.clear();
    for (const auto& [name, model] : found) had_name_[name].insert(model.tags);
    for (const auto& [name, model] : files_) {
      if (!model.synced) continue;
      ASSERT_TRUE(found.contains(name)) << name << " is missing, which was synced";
      ASSERT_EQ(Difference(found[name].bytes, *model.synced), "") << name;
    }
    for (auto& [name, model] : found) model.synced = model.bytes;
    files_ = std::move(found);
  }

 private:
  std::string Path() const { return directory_ + "/names"; }

  testing::Random& random_;
  std::string directory_;
  std::unique_ptr<Server> server_;
  std::map<std::string, KeptModel> files_;
  uint8_t tag_ = 0;
  std::map<std::string, std::set<std::shared_ptr<Tags>>> had_name_;  // since the last crash
};

TEST(KeptFilesProperty, WhatWasSyncedSurvivesCrashes) {
  testing::Random random(testing::TestSeed(33));
  for (int round = 0; round < 20; round++) {
    Scene scene(random);
    for (int crash = 0; crash < 8; crash++) {
      for (uint64_t steps = random.Between(1, 60); steps != 0; steps--) {
        scene.Step();
        if (HasFatalFailure()) return;
      }
      scene.Compare();
      if (HasFatalFailure()) return;
      scene.Crash();
      if (HasFatalFailure()) return;
    }
  }
}

}  // namespace
}  // namespace rocegw::far
