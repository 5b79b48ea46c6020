// SPDX-License-Identifier: Apache-2.0
#include "conformance/file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <streambuf>
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
    if (!has_name_) {
      if (link_to(path_)) return file_.close() == 0;
      if (errno != EEXIST) return false;
      // A link takes the place of nothing, a renamed file does.
      ::unlink(temporary_.c_str());
      has_name_ = link_to(temporary_);
    }
    if (!has_name_ || file_.close() != 0 || ::rename(temporary_.c_str(), path_.c_str()) != 0) return false;
    has_name_ = false;
    return true;
  }

 private:
  bool link_to(const std::string& name) const {
    return ::linkat(AT_FDCWD, own_link(file_.get()).c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0;
  }
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

// 0 at the end.
std::size_t read_some(int fd, char* to, std::size_t most, const std::string& path) {
  for (;;) {
    const ssize_t got = ::read(fd, to, most);
    if (got >= 0) return static_cast<std::size_t>(got);
    if (errno != EINTR) throw InputError(fmt::format("{}: cannot be read: {}", path, reason()));
  }
}

// Of a file that `opened` has looked at: the same one, whatever takes its name meanwhile.
class TextStream : public std::istream {
 public:
  TextStream(const std::string& path, std::uint64_t longest) : std::istream(nullptr), buffer_(path, longest) {
    rdbuf(&buffer_);
  }

 private:
  class Buffer : public std::streambuf {
   public:
    Buffer(const std::string& path, std::uint64_t longest) : path_(path), longest_(longest), bytes_(buffered, '\0') {
      std::uint64_t size = 0;
      file_ = opened(path, longest, size);
    }

   protected:
    int_type underflow() override {
      const std::size_t got = read_some(file_.get(), bytes_.data(), bytes_.size(), path_);
      read_ += got;
      if (read_ > longest_) throw InputError(fmt::format("{}: is longer than {} bytes", path_, longest_));
      setg(bytes_.data(), bytes_.data(), bytes_.data() + got);
      return got == 0 ? traits_type::eof() : traits_type::to_int_type(bytes_[0]);
    }
    pos_type seekpos(pos_type place, std::ios_base::openmode /*which*/) override {
      if (place != pos_type(0) || ::lseek(file_.get(), 0, SEEK_SET) != 0) return pos_type(off_type(-1));
      read_ = 0;
      setg(nullptr, nullptr, nullptr);
      return place;
    }

   private:
    std::string path_;
    std::uint64_t longest_, read_ = 0;
    std::string bytes_;
    Descriptor file_{-1};
  };

  Buffer buffer_;
};

}  // namespace

std::string read_text_file(const std::string& path, std::uint64_t longest) {
  std::uint64_t size = 0;
  const Descriptor file = opened(path, longest, size);
  std::string text(static_cast<std::size_t>(size), '\0');
  std::size_t length = 0;
  while (length < text.size()) {
    const std::size_t got = read_some(file.get(), text.data() + length, text.size() - length, path);
    if (got == 0) break;  // it was cut while it was read
    length += got;
  }
  text.resize(length);
  return text;
}

std::unique_ptr<std::istream> open_text_file(const std::string& path, std::uint64_t longest) {
  return std::make_unique<TextStream>(path, longest);
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
