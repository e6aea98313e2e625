// SPDX-License-Identifier: Apache-2.0
// The file with the fleet's keys: accepted contents, and refusals without showing a key.
#include "gateway/daemon/key_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

namespace rocegw::daemon {
namespace {

constexpr char kOne[] = "00112233445566778899aabbccddeeff";
constexpr char kTwo[] = "FFEEDDCCBBAA99887766554433221100";

class KeyFileTest : public ::testing::Test {
 protected:
  ~KeyFileTest() override { ::unlink(path.c_str()); }
  StatusOr<FleetKeys> Read(const std::string& text, mode_t mode = 0600) {
    ::unlink(path.c_str());
    std::ofstream(path) << text;
    ::chmod(path.c_str(), mode);
    return ReadKeyFile(path);
  }
  // Expects a refusal with that text and without a key.
  void ExpectRefused(const StatusOr<FleetKeys>& read, const std::string& text) {
    ASSERT_FALSE(read.ok());
    EXPECT_NE(read.status().text().find(text), std::string::npos) << read.status().text();
    EXPECT_NE(read.status().text().find(path), std::string::npos);
    EXPECT_EQ(read.status().text().find("0011"), std::string::npos) << "a secret";
  }

  const std::string path = ::testing::TempDir() + "key_file_" + std::to_string(::getpid());
};

TEST_F(KeyFileTest, Lines_AreKeysInTheirOrder) {
  auto keys = Read(std::string("# fleet\n\n") + kOne + "\r\n" + kTwo + "\n");
  ASSERT_TRUE(keys.ok()) << keys.status().text();
  EXPECT_EQ(keys->count, 2u);
  EXPECT_EQ(keys->signer(), (SecretKey{0x0011223344556677, 0x8899aabbccddeeff}));
  EXPECT_EQ(keys->keys[1], (SecretKey{0xFFEEDDCCBBAA9988, 0x7766554433221100}));
  EXPECT_TRUE(keys->active());
}

TEST_F(KeyFileTest, RightsOfOthers_AreRefused) {
  for (const mode_t mode : {0640, 0604, 0620, 0602, 0610}) {
    SCOPED_TRACE(mode);
    ExpectRefused(Read(kOne, mode), "chmod 0600");
  }
  EXPECT_TRUE(Read(kOne, 0400).ok());
}

TEST_F(KeyFileTest, WhatIsNoKey_IsRefusedWithItsLine) {
  ExpectRefused(Read(""), "has no key");
  ExpectRefused(Read(std::string(kOne) + "\n" + std::string(kOne).substr(1)), "line 2");
  ExpectRefused(Read(std::string(31, '0') + "g"), "line 1");
  ExpectRefused(Read(std::string(32, '0')), "line 1");
  ExpectRefused(Read(std::string("-") + std::string(31, '1')), "line 1");
  std::string four;
  for (int i = 0; i < 4; ++i) four += std::string(kOne) + "\n";
  ExpectRefused(Read(four), "line 4: at most three");
  ExpectRefused(Read(std::string(5000, '#')), "longer");
}

TEST_F(KeyFileTest, WhatIsNoFile_IsRefused) {
  ExpectRefused(ReadKeyFile(path), "No such file");
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  ExpectRefused(ReadKeyFile(path), "not a regular file");
}

TEST_F(KeyFileTest, AReplacedFile_HasChangedOnce) {
  ASSERT_TRUE(Read(kOne).ok());
  KeyFileWatch watch;
  EXPECT_TRUE(watch.HasChanged(path)) << "not seen before";
  EXPECT_FALSE(watch.HasChanged(path));
  // Same length, in the same tick of the file system's clock: the inode tells.
  const std::string fresh = path + ".new";
  std::ofstream(fresh) << kTwo;
  ASSERT_EQ(::rename(fresh.c_str(), path.c_str()), 0);
  EXPECT_TRUE(watch.HasChanged(path));
  EXPECT_FALSE(watch.HasChanged(path));
  watch.Forget();
  EXPECT_TRUE(watch.HasChanged(path)) << "after a read that failed";
  ::unlink(path.c_str());
  EXPECT_FALSE(watch.HasChanged(path)) << "the keys stay when the file is gone";
}

}  // namespace
}  // namespace rocegw::daemon
