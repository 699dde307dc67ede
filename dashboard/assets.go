package dashboard

import (
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"path"
	"sync"

	"github.com/gofiber/fiber/v2"

	"github.com/sluicehost/sluice/host/web"
)

//go:embed assets
var assetFiles embed.FS

// An asset is a file that pages load. It contains nobody's data, so it needs no session.
type asset struct {
	body      []byte
	packed    []byte // gzip; nil: not smaller
	mediaType string
	digest    string // of the body; part of its address, so that it can be cached for ever
}

var mediaTypes = map[string]string{
	".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml",
}

// loadAssets reads and compresses the assets, once per process.
var loadAssets = sync.OnceValues(func() (map[string]asset, error) {
	found := map[string]asset{}
	err := fs.WalkDir(assetFiles, "assets", func(name string, d fs.DirEntry, err error) error {
		mediaType := mediaTypes[path.Ext(name)]
		if err != nil || d.IsDir() || mediaType == "" {
			return err
		}
		body, err := assetFiles.ReadFile(name)
		sum := sha256.Sum256(body)
		found[path.Base(name)] = asset{body, web.Gzip(body, gzip.BestCompression), mediaType, hex.EncodeToString(sum[:8])}
		return err
	})
	return found, err
})

// assetURL returns the address of an asset.
func (u *frame) assetURL(name string) string {
	return "/ui/assets/" + name + "?v=" + u.assets[name].digest
}

func (u *frame) asset(c *fiber.Ctx) error {
	name, err := web.Param(c, "name")
	if err != nil {
		return err
	}
	a, ok := u.assets[name]
	if !ok {
		return web.NotFound()
	}
	if string(c.Context().QueryArgs().Peek("v")) == a.digest {
		c.Set(fiber.HeaderCacheControl, "public, max-age=31536000, immutable")
	}
	c.Set(fiber.HeaderContentType, a.mediaType)
	return web.SendGzip(c, a.body, a.packed)
}
