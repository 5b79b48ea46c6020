// SPDX-License-Identifier: Apache-2.0
#include "conformance/file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>

#include <fmt/format.h>

#include "conformance/contract.hpp"
#include "conformance/growing_file.hpp"

namespace qkcts {
namespace {

constexpr std::size_t buffered = std::size_t{1} << 16;

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() { close(); }
  int get() const { return fd_; }
  int close() {
    const int fd = std::exchange(fd_, -1);
    return fd < 0 ? 0 : ::close(fd);
  }

 private:
  int fd_;
};

std::string reason() {
  return std::strerror(errno);
}

// Has no name until it is whole, where there are such files; else it stands beside its place from the beginning.
class NewFile {
 public:
  explicit NewFile(const std::string& path)
      : path_(path), temporary_(fmt::format("{}.partial.{}", path, ::getpid())), file_(nameless(path)) {
    if (file_.get() >= 0) return;
    file_ = Descriptor(::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    has_name_ = file_.get() >= 0;
  }
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;
  ~NewFile() {
    if (has_name_) ::unlink(temporary_.c_str());
  }

  int get() const { return file_.get(); }  // -1: it cannot be created

  // False: errno says why.
  bool put_in_place() {
    if (::fsync(file_.get()) != 0) return false;
    if (!has_name_) {  // a link takes the place of nothing, a renamed file does
      ::unlink(temporary_.c_str());
      has_name_ =
          ::linkat(AT_FDCWD, own_link(file_.get()).c_str(), AT_FDCWD, temporary_.c_str(), AT_SYMLINK_FOLLOW) == 0;
    }
    if (!has_name_ || file_.close() != 0 || ::rename(temporary_.c_str(), path_.c_str()) != 0) return false;
    has_name_ = false;
    return true;
  }

 private:
  static std::string own_link(int fd) { return fmt::format("/proc/self/fd/{}", fd); }

  // Nothing where it could not be given a name later.
  static Descriptor nameless(const std::string& path) {
    const std::filesystem::path folder = std::filesystem::path(path).parent_path();
    Descriptor file(::open(folder.empty() ? "." : folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666));
    if (file.get() >= 0 && ::access(own_link(file.get()).c_str(), F_OK) != 0) file.close();
    return file;
  }

  std::string path_, temporary_;
  Descriptor file_;
  bool has_name_ = false;  // that is to be taken away again
};

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

Descriptor opened(const std::string& path, std::uint64_t longest, std::uint64_t& size) {
  // O_NONBLOCK: opening a named pipe without a writer would wait for ever.
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) throw InputError(fmt::format("{}: cannot be opened: {}", path, reason()));
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) throw InputError(fmt::format("{}: {}", path, reason()));
  if (!S_ISREG(status.st_mode)) throw InputError(fmt::format("{}: is no regular file", path));
  size = static_cast<std::uint64_t>(status.st_size);
  if (size > longest) throw InputError(fmt::format("{}: is longer than {} bytes", path, longest));
  return file;
}

}  // namespace

std::string read_text_file(const std::string& path, std::uint64_t longest) {
  std::uint64_t size = 0;
  const Descriptor file = opened(path, longest, size);
  std::string text(static_cast<std::size_t>(size), '\0');
  std::size_t length = 0;
  while (length < text.size()) {
    const ssize_t got = ::read(file.get(), text.data() + length, text.size() - length);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw InputError(fmt::format("{}: cannot be read: {}", path, reason()));
    if (got == 0) break;  // it was cut while it was read
    length += static_cast<std::size_t>(got);
  }
  text.resize(length);
  return text;
}

std::ifstream open_text_file(const std::string& path, std::uint64_t longest) {
  std::uint64_t size = 0;
  opened(path, longest, size);
  std::ifstream file(path, std::ios::binary);
  if (!file) throw InputError(fmt::format("{}: cannot be opened", path));
  return file;
}

void require_replaceable(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode))
    throw WriteError(fmt::format("{}: is no regular file, and would be replaced by one", path));
}

void write_file_atomically(const std::string& path, const std::function<void(const TextSink& sink)>& write) {
  require_replaceable(path);
  NewFile file(path);
  if (file.get() < 0) throw WriteError(fmt::format("{}: cannot be created: {}", path, reason()));
  const auto require = [&path](bool done) {
    if (!done) throw WriteError(fmt::format("{}: cannot be written: {}", path, reason()));
  };
  std::string waiting;
  write([&](std::string_view piece) {
    if (waiting.size() + piece.size() >= buffered) {
      require(write_all(file.get(), std::exchange(waiting, {})));
      if (piece.size() >= buffered) return require(write_all(file.get(), piece));
    }
    waiting += piece;
  });
  require(write_all(file.get(), waiting) && file.put_in_place());
}

void write_file_atomically(const std::string& path, std::string_view text) {
  write_file_atomically(path, [text](const TextSink& sink) { sink(text); });
}

std::string text_of(const std::function<void(const TextSink& sink)>& write) {
  std::string text;
  write([&text](std::string_view piece) { text += piece; });
  return text;
}

}  // namespace qkcts
