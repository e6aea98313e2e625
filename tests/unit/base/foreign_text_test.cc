// SPDX-License-Identifier: Apache-2.0
#include "gateway/base/foreign_text.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace rocegw {
namespace {

TEST(ForeignTextTest, PrintableText_StaysAsItIs) {
  for (const char* text :
       {"", "rping", "J\u00fcrgens_k\u00f6der", "\u6570\u636e", "\U0001f600", "a b~!\\x1b"})
    EXPECT_EQ(ForeignText(text), text);
}

TEST(ForeignTextTest, ControlCharacters_AreEscaped) {
  EXPECT_EQ(ForeignText("a\x1b[31mb\nc\td\x7f"), "a\\x1b[31mb\\x0ac\\x09d\\x7f");
  EXPECT_EQ(ForeignText(std::string_view("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(ForeignText("\xc2\x9b"), "\\xc2\\x9b") << "C1 control sequence introducer";
}

TEST(ForeignTextTest, CharactersThatChangeDirection_AreEscaped) {
  EXPECT_EQ(ForeignText("a\u202eb"), "a\\xe2\\x80\\xaeb");
  EXPECT_EQ(ForeignText("\u2028"), "\\xe2\\x80\\xa8");
}

TEST(ForeignTextTest, CutCharacter_IsEscapedByteByByte) {
  // The kernel truncates process names after 15 bytes.
  EXPECT_EQ(ForeignText("aaaaaaaaaaaaaa\xc3"), "aaaaaaaaaaaaaa\\xc3");
  EXPECT_EQ(ForeignText("\xe2\x82"), "\\xe2\\x82");
}

TEST(ForeignTextTest, FormsThatAreNoUtf8_AreEscaped) {
  EXPECT_EQ(ForeignText("\xc0\x80"), "\\xc0\\x80") << "two bytes for U+0000";
  EXPECT_EQ(ForeignText("\xe0\x80\xaf"), "\\xe0\\x80\\xaf") << "three bytes for U+002F";
  EXPECT_EQ(ForeignText("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "a surrogate";
  EXPECT_EQ(ForeignText("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80") << "beyond U+10FFFF";
  EXPECT_EQ(ForeignText("\xff\xfe"), "\\xff\\xfe");
}

TEST(ForeignTextTest, AnyTwoBytes_ComeBackPrintableAndUnchangedByASecondPass) {
  for (unsigned pair = 0; pair < 0x10000; ++pair) {
    const char bytes[] = {static_cast<char>(pair >> 8), static_cast<char>(pair & 0xff)};
    const std::string text = ForeignText({bytes, 2});
    for (const char c : text) ASSERT_FALSE(static_cast<uint8_t>(c) < 0x20 || c == 0x7f) << pair;
    ASSERT_EQ(ForeignText(text), text) << pair;
  }
}

TEST(ForeignTextTest, Lines_KeepLineFeedsAndTabs) {
  EXPECT_EQ(ForeignLines("a\n\tb\r\x1b"), "a\n\tb\\x0d\\x1b");
}

}  // namespace
}  // namespace rocegw
